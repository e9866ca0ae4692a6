package viewkeeper

import "encoding/json"

// Definition is one SQL view, plain or materialized, as accepted.
type Definition struct {
	Name Name `json:"name"`
	Kind Kind `json:"kind"`
	// SQL is the CREATE statement, byte for byte as submitted; a rename's rewrite
	// is the only change that is ever made to it.
	SQL string `json:"sql"`
	// Comment is nil when there is none. It survives OR REPLACE.
	Comment *string `json:"comment,omitempty"`
	// ID is the version of the statement that created the name. It tells two
	// definitions apart that had one name at different times, and survives OR
	// REPLACE and RENAME.
	ID Version `json:"id"`
}

// Row is one definition's value in the group table. A drop is a row too, with a
// version, so that a node that was away for longer than the topic keeps
// tombstones still learns of it.
type Row struct {
	Name Name
	// Version is that of the statement that last changed the row.
	Version Version
	// Epoch is that of the owner that wrote this copy of the row. It says nothing
	// about the definition: completion and healing write rows again under a new one.
	Epoch Epoch
	// Definition is nil when the row is a drop.
	Definition *Definition
	// Extra holds the fields of a newer format that this program does not know.
	// They are written back as they came.
	Extra map[string]json.RawMessage
	// Format is the version of the format that the row was read in, 0 for a new
	// row. A row of a newer format is written back with its own number.
	Format int
}

// Live reports whether the row is a definition and not a drop.
func (r Row) Live() bool { return r.Definition != nil }

// Column is one output column. Type is the engine's own string.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Reference is one thing that a definition's text reads itself. Name is written
// as schema.name, main included, and is the path for files.
type Reference struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}
