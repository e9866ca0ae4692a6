package duckdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// baseCatalog is what the base holds, and what the engine brings of its own.
type baseCatalog struct {
	relations map[viewkeeper.Name]bool
	schemas   map[string]bool // those that stay when the last stub in them goes
	types     map[viewkeeper.Name]bool
	macros    map[viewkeeper.Name]*macro
	internal  map[string]bool // the engine's own views in main
	described registry.Engine
}

// has reports whether the base has a relation.
func (b *baseCatalog) has(n viewkeeper.Name) bool { return b.relations[n] }

// isCatalog reports whether a name is one of the engine's own catalog, which
// shows a node's state, or viewkeeper's.
func (b *baseCatalog) isCatalog(schema, name string) bool {
	if slices.Contains(reservedSchemas, schema) {
		return true
	}
	return (schema == "" || schema == viewkeeper.DefaultSchema) && b.internal[name] && !b.has(viewkeeper.MakeName(schema, name))
}

// loadBase reads what the base's statements made.
func loadBase(ctx context.Context, g *gate, statements []baseStatement) (*baseCatalog, error) {
	b := &baseCatalog{
		relations: map[viewkeeper.Name]bool{}, types: map[viewkeeper.Name]bool{},
		macros: map[viewkeeper.Name]*macro{}, internal: map[string]bool{}, schemas: map[string]bool{},
	}
	g.base = b
	rows, err := g.conn.query(ctx, `SELECT 'relation', schema_name, table_name FROM duckdb_tables() WHERE NOT internal
		UNION ALL SELECT 'relation', schema_name, view_name FROM duckdb_views() WHERE NOT internal
		UNION ALL SELECT 'type', schema_name, type_name FROM duckdb_types() WHERE NOT internal
		UNION ALL SELECT 'schema', schema_name, '' FROM duckdb_schemas() WHERE database_name = current_database()
		UNION ALL SELECT 'internal', schema_name, view_name FROM duckdb_views() WHERE internal`)
	if err != nil {
		return nil, err
	}
	var names []viewkeeper.Name
	for _, row := range rows {
		name := viewkeeper.MakeName(row[1], row[2])
		switch row[0] {
		case "relation":
			b.relations[name] = true
			names = append(names, name)
		case "type":
			b.types[name] = true
			b.described.Types = append(b.described.Types, name.String())
		case "schema":
			b.schemas[viewkeeper.Fold(row[1])] = true
		default:
			b.internal[name.View] = true
		}
	}
	slices.SortFunc(names, viewkeeper.Name.Compare)
	slices.Sort(b.described.Types)
	for i := range statements {
		if err := b.addMacro(ctx, g, &statements[i]); err != nil {
			return nil, err
		}
	}
	if err := b.describeRelations(ctx, g, names, statements); err != nil {
		return nil, err
	}
	b.describeMacros(g)
	version, err := g.conn.query(ctx, "SELECT version()")
	if err != nil {
		return nil, err
	}
	b.described.Name = "duckdb " + strings.TrimPrefix(version[0][0], "v")
	b.described.BaseDigest, b.described.Answers = b.digest(statements), answers(g)
	return b, nil
}

// describeRelations gives the columns of the base's relations, and says which of
// its views are volatile, also through other views.
func (b *baseCatalog) describeRelations(ctx context.Context, g *gate, names []viewkeeper.Name, statements []baseStatement) error {
	volatile := map[viewkeeper.Name]string{}
	for i := range statements {
		s := &statements[i]
		if s.kind != "view" {
			continue
		}
		for _, part := range s.parts() {
			w, refusal, err := g.walk(ctx, part.text, forBase)
			if err != nil {
				return err
			}
			if refusal != nil {
				continue // the engine took it, which is enough for a base
			}
			w.finish()
			why := ""
			if v := w.out.Volatile; v != nil {
				why = v.Message
			}
			for _, r := range w.out.References {
				if inner := volatile[viewkeeper.MakeName(r.Schema, r.View)]; why == "" && inner != "" {
					why = inner
				}
			}
			volatile[s.name] = why
		}
	}
	for _, n := range names {
		columns, err := describe(ctx, g.conn, "SELECT * FROM "+n.SQL())
		if err != nil {
			return fmt.Errorf("the base's %s: %w", n, err)
		}
		b.described.Relations = append(b.described.Relations, registry.Relation{Name: n, Columns: columns, Volatile: volatile[n]})
	}
	return nil
}

// describeMacros says what each macro reads, and whether it is volatile.
func (b *baseCatalog) describeMacros(g *gate) {
	for name, m := range b.macros {
		w := newWalker(g, forBase, "", nil)
		for i := range m.bodies {
			w.macro = name
			one := &macro{name: name, table: m.table, bodies: m.bodies[i : i+1]}
			w.follow(one, object{}, -1)
		}
		w.finish()
		d := registry.Macro{Name: name, Table: m.table, References: w.out.References}
		if w.out.Volatile != nil {
			d.Volatile = strings.TrimPrefix(w.out.Volatile.Message, "the macro "+name.String()+" uses ")
		}
		b.described.Macros = append(b.described.Macros, d)
	}
	slices.SortFunc(b.described.Macros, func(x, y registry.Macro) int { return x.Name.Compare(y.Name) })
}

// digest is over the objects, sorted, each with its text (white space and comments
// do not count) and its columns. Where on disk the files of a base lie is no part
// of it.
func (b *baseCatalog) digest(statements []baseStatement) string {
	var lines []string
	rows := 0
	for i := range statements {
		s := &statements[i]
		var text strings.Builder
		for _, t := range s.tokens {
			text.WriteString(t.text(s.text))
			text.WriteByte(' ')
		}
		order := ""
		if s.kind == "insert" {
			rows++
			order = fmt.Sprintf("%06d", rows)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s%s", s.kind, s.name, order, text.String()))
	}
	for _, r := range b.described.Relations {
		lines = append(lines, fmt.Sprintf("columns %s %q", r.Name, r.Columns))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(b.described.Name + "\n" + strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}
