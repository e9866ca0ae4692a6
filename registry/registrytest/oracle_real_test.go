package registrytest_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// The independent route: a fresh DuckDB database, real views in dependency order,
// through database/sql and nothing of this project.

// built is what became of one definition.
type built struct {
	columns []viewkeeper.Column // nil when it does not build
	reads   []viewkeeper.Name
	// root says, of one that does not build, that all it reads does.
	root   bool
	cyclic bool
	why    string
}

func (b *built) ok() bool { return b != nil && b.columns != nil }

// state is what became of all.
type state map[viewkeeper.Name]*built

// realEngine opens one fresh database after the other.
type realEngine struct {
	conn  *sql.Conn
	close func()
	count int
}

func openReal(ctx context.Context) (*realEngine, error) {
	db, err := sql.Open("duckdb", "?threads=1")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return nil, err
	}
	return &realEngine{conn: conn, close: func() { conn.Close(); db.Close() }}, nil
}

// build makes the base and the definitions in a new database, and forgets it.
func (e *realEngine) build(ctx context.Context, base tables, defs definitions) (state, error) {
	e.count++
	name := fmt.Sprintf("fresh%d", e.count)
	if _, err := e.conn.ExecContext(ctx, fmt.Sprintf("ATTACH ':memory:' AS %s; USE %s; %s", name, name, base.sql())); err != nil {
		return nil, err
	}
	schemas := map[string]bool{}
	for n := range defs {
		if !schemas[n.Schema] {
			schemas[n.Schema] = true
			if _, err := e.conn.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+n.Schema); err != nil {
				return nil, err
			}
		}
	}
	b := &realBuild{engine: e, base: base, defs: defs, out: state{}, open: map[viewkeeper.Name]bool{}}
	for _, n := range defs.names() {
		if err := b.visit(ctx, n); err != nil {
			return nil, err
		}
	}
	_, err := e.conn.ExecContext(ctx, "USE memory; DETACH "+name)
	return b.out, err
}

type realBuild struct {
	engine *realEngine
	base   tables
	defs   definitions
	out    state
	open   map[viewkeeper.Name]bool // being visited
}

// visit builds what a definition reads, then itself. A definition that is visited
// again while it is open is on a cycle.
func (b *realBuild) visit(ctx context.Context, n viewkeeper.Name) error {
	if b.out[n] != nil || b.defs[n] == nil {
		return nil
	}
	d := b.defs[n]
	b.open[n] = true
	defer delete(b.open, n)
	got := &built{root: true}
	var missing bool
	got.reads, missing = reads(d, b.defs, b.base)
	if b.base[n] != nil { // its readers read the base
		got.why = "hidden by the base"
		b.out[n] = got
		return nil
	}
	for _, r := range got.reads {
		if b.base[r] != nil {
			continue
		}
		if b.open[r] {
			got.cyclic = true
			continue
		}
		if err := b.visit(ctx, r); err != nil {
			return err
		}
		if b.defs[r] != nil && !b.out[r].ok() {
			got.root = false
			got.why = "reads " + r.String()
		}
	}
	b.out[n] = got
	switch {
	case got.cyclic:
		got.why = "cycle"
		return nil
	case !got.root:
		return nil
	case missing:
		got.why = "missing"
		return nil
	}
	text := d.sql("CREATE VIEW", func(r ref) string {
		full, _ := resolve(r, d.name, b.defs, b.base)
		return full.String() + r.alias
	})
	if _, err := b.engine.conn.ExecContext(ctx, text); err != nil {
		got.why, _, _ = strings.Cut(err.Error(), "\n")
		return nil
	}
	cols, err := b.describe(ctx, n)
	got.columns = cols
	return err
}

func (b *realBuild) describe(ctx context.Context, n viewkeeper.Name) ([]viewkeeper.Column, error) {
	rows, err := b.engine.conn.QueryContext(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+n.String()+")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var cols []viewkeeper.Column
	for rows.Next() {
		var c viewkeeper.Column
		if err := rows.Scan(&c.Name, &c.Type); err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	return cols, rows.Err()
}

// failing gives the names that do not build, sorted.
func (s state) failing() []viewkeeper.Name {
	var out []viewkeeper.Name
	for n, b := range s {
		if !b.ok() {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, viewkeeper.Name.Compare)
	return out
}
