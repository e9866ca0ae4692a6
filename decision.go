package viewkeeper

import (
	"encoding/json"
	"time"
)

// Verdict is the outcome of a statement.
type Verdict string

// The verdicts.
const (
	Accepted  Verdict = "accepted"
	Refused   Verdict = "refused"
	Unchanged Verdict = "unchanged"
)

// Action says what a statement did to a definition, or would have done.
type Action string

// The actions.
const (
	ActionCreated       Action = "created"
	ActionReplaced      Action = "replaced"
	ActionRenamed       Action = "renamed"
	ActionDropped       Action = "dropped"
	ActionCommented     Action = "commented"
	ActionOutputChanged Action = "output_changed"
)

// Decision is the answer to a statement: its JSON form is the contract of
// docs/http.md, and of the decisions topic with SQL and Rows filled in.
type Decision struct {
	StatementID string    `json:"statement_id"`
	Version     Version   `json:"version"`
	Offset      int64     `json:"offset"`
	Verdict     Verdict   `json:"verdict"`
	Code        Code      `json:"code,omitempty"`
	Message     string    `json:"message"`
	Position    *Position `json:"position"`
	// Changed is what the statement did, or for a refused one would have done.
	Changed []Change `json:"changed"`
	// Broken is what would break, for a refused statement.
	Broken []Broken `json:"broken"`
	// Repaired is the definitions that were broken before and now build.
	Repaired []Name `json:"repaired"`
	// Dropped is what DROP ... CASCADE removed beyond the names it was given, and those.
	Dropped  []Name    `json:"dropped"`
	Warnings []Warning `json:"warnings"`

	Author     string    `json:"author"`
	Reason     string    `json:"reason"`
	At         time.Time `json:"at"`
	Owner      string    `json:"owner"`
	Epoch      Epoch     `json:"epoch"`
	Engine     string    `json:"engine"`
	BaseDigest string    `json:"base_digest"`

	// SQL is the statement as submitted, Rows each changed definition in full
	// after it (a dropped one with its name and version only). Both are set on the
	// decisions topic and in the history, and left out of the answer to a client.
	SQL  string    `json:"sql,omitempty"`
	Rows []RowJSON `json:"rows,omitempty"`

	// Extra holds the fields of a newer program, and Format the number of the newer
	// format that the decision was read in, else 0. They are written back as they
	// came, and no client sees them.
	Extra  map[string]json.RawMessage `json:"-"`
	Format int                        `json:"-"`
}

// RowJSON is a Row as a decision shows it.
type RowJSON struct {
	Name       Name        `json:"name"`
	Version    Version     `json:"version"`
	Dropped    bool        `json:"dropped,omitempty"`
	Definition *Definition `json:"definition,omitempty"`
}

// Change is one definition that a statement changes, itself or in its output.
// For more than 100 output changes ColumnsBefore and ColumnsAfter are empty from
// the 101st on.
type Change struct {
	Name          Name     `json:"name"`
	Action        Action   `json:"action"`
	ColumnsBefore []Column `json:"columns_before"`
	ColumnsAfter  []Column `json:"columns_after"`
	// RenamedTo is the new name, for ActionRenamed.
	RenamedTo *Name `json:"renamed_to,omitempty"`
}

// Broken is one definition that would no longer build.
type Broken struct {
	Name   Name   `json:"name"`
	Reason string `json:"reason"`
	// Position is the place in that definition's own text.
	Position *Position `json:"position"`
	// RootCause is nil for a root cause, else the definition to blame.
	RootCause *Name `json:"root_cause"`
}

// Warning says that something binds but may not mean what was meant.
type Warning struct {
	Code     Code      `json:"code"`
	Name     Name      `json:"name"`
	Message  string    `json:"message"`
	Position *Position `json:"position"`
}

// Normalize makes absent lists empty ones and times UTC, so that the JSON form
// never shows null for a list.
func (d *Decision) Normalize() {
	if d.Changed == nil {
		d.Changed = []Change{}
	}
	for i := range d.Changed {
		if d.Changed[i].ColumnsBefore == nil {
			d.Changed[i].ColumnsBefore = []Column{}
		}
		if d.Changed[i].ColumnsAfter == nil {
			d.Changed[i].ColumnsAfter = []Column{}
		}
	}
	if d.Broken == nil {
		d.Broken = []Broken{}
	}
	if d.Repaired == nil {
		d.Repaired = []Name{}
	}
	if d.Dropped == nil {
		d.Dropped = []Name{}
	}
	if d.Warnings == nil {
		d.Warnings = []Warning{}
	}
	d.At = d.At.UTC()
}

// ForClient gives the decision without SQL and Rows, as clients get it.
func (d Decision) ForClient() Decision {
	d.SQL, d.Rows, d.Extra, d.Format = "", nil, nil, 0
	return d
}
