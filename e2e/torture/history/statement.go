package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// The kinds of a Change.
const (
	Create      = "create"
	Replace     = "replace"
	IfNotExists = "if not exists"
	Drop        = "drop"
	DropIf      = "drop if exists"
	Cascade     = "cascade"
	Rename      = "rename"
	Comment     = "comment"
)

// Change is one thing that a statement is about, in a form that the model reads
// without parsing SQL.
type Change struct {
	Kind string   `json:"kind"`
	Name string   `json:"name"`
	To   string   `json:"to,omitempty"`   // the new name
	More []string `json:"more,omitempty"` // further names of a drop
	Text string   `json:"text,omitempty"` // the comment
	Def  Def      `json:"def"`
}

// Def is a definition of the workload: it returns one row of constants that say
// which statement it comes from, so that whoever reads it knows what was read.
//
//	CREATE VIEW v AS SELECT N::BIGINT AS s[, N::BIGINT AS x], a0.s AS r0, a1.x AS r1 FROM u AS a0, w AS a1
type Def struct {
	N     int64  `json:"n,omitempty"`
	X     bool   `json:"x,omitempty"` // it has the second column, which readers may need
	Reads []Read `json:"reads,omitempty"`
}

// Read is what a definition takes from another one: its column s or x.
type Read struct {
	Name string `json:"name"`
	X    bool   `json:"x,omitempty"`
}

func (r Read) column() string {
	if r.X {
		return "x"
	}
	return "s"
}

// Statement is what a client sends.
type Statement struct {
	ID     string `json:"id,omitempty"`  // "" when the server, or the offset, gives it one
	Key    string `json:"key,omitempty"` // of the record, when it is not the usual one
	Expect *int64 `json:"expect,omitempty"`
	// Bad is a text that does not parse; Tombstone a null record on the key.
	Bad       string   `json:"bad,omitempty"`
	Tombstone bool     `json:"tombstone,omitempty"`
	Set       bool     `json:"set,omitempty"`
	Changes   []Change `json:"changes,omitempty"`
}

// SQL is the text that is sent, "" for a tombstone.
func (s Statement) SQL() string {
	switch {
	case s.Bad != "":
		return s.Bad
	case s.Tombstone:
		return ""
	case !s.Set:
		return s.Changes[0].sql()
	}
	var b strings.Builder
	b.WriteString("BEGIN;\n")
	for _, c := range s.Changes {
		b.WriteString(c.sql() + ";\n")
	}
	return b.String() + "COMMIT;"
}

// RecordKey is the key that a producer gives the record.
func (s Statement) RecordKey() string {
	switch {
	case s.Key != "":
		return s.Key
	case s.Set || s.Bad != "":
		return "set-" + s.ID
	}
	return s.Changes[0].Name
}

// Names are the names that the statement is about.
func (s Statement) Names() []string {
	var names []string
	for _, c := range s.Changes {
		names = append(names, c.targets()...)
	}
	return names
}

func (c Change) targets() []string {
	names := append([]string{c.Name}, c.More...)
	if c.To != "" {
		names = append(names, c.To)
	}
	return names
}

func (c Change) sql() string {
	switch c.Kind {
	case Drop:
		return "DROP VIEW " + strings.Join(c.targets(), ", ")
	case DropIf:
		return "DROP VIEW IF EXISTS " + strings.Join(c.targets(), ", ")
	case Cascade:
		return "DROP VIEW " + c.Name + " CASCADE"
	case Rename:
		return "ALTER VIEW " + c.Name + " RENAME TO " + c.To
	case Comment:
		return fmt.Sprintf("COMMENT ON VIEW %s IS '%s'", c.Name, c.Text)
	}
	head := map[string]string{Create: "CREATE VIEW ", Replace: "CREATE OR REPLACE VIEW ", IfNotExists: "CREATE VIEW IF NOT EXISTS "}[c.Kind]
	return head + c.Name + " AS " + c.Def.sql()
}

func (d Def) sql() string {
	columns := []string{fmt.Sprintf("%d::BIGINT AS s", d.N)}
	if d.X {
		columns = append(columns, fmt.Sprintf("%d::BIGINT AS x", d.N))
	}
	var from []string
	for i, r := range d.Reads {
		columns = append(columns, fmt.Sprintf("a%d.%s AS r%d", i, r.column(), i))
		from = append(from, fmt.Sprintf("%s AS a%d", r.Name, i))
	}
	text := "SELECT " + strings.Join(columns, ", ")
	if from != nil {
		text += " FROM " + strings.Join(from, ", ")
	}
	return text
}

func (d Def) equal(o Def) bool { return d.N == o.N && d.X == o.X && slices.Equal(d.Reads, o.Reads) }

// number finds N in the text of a definition, 0 when it has none.
func number(sql string) int64 {
	_, rest, ok := strings.Cut(sql, " AS SELECT ")
	if !ok {
		return 0
	}
	digits, _, _ := strings.Cut(rest, "::")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// bare is a name without the schema main, which is the only one of the workload.
func bare(n viewkeeper.Name) string { return n.View }
