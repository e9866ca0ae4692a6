package duckdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// vkSchema is the schema of what viewkeeper tells queries about itself.
const vkSchema = "vk"

// appliedMacro holds the version that the views are at. Like them it lies in the
// engine's catalog, so a query's snapshot has the views and the version of one
// commit, always. It is a macro and not a view, so that SHOW TABLES and its like list
// what is for people alone.
const appliedMacro = `"vk"."__applied"`

// SystemTable is one table of the schema vk. In the engine it is empty: the keeper
// has the rows, and a query that names the table brings them with it, as a JSON
// array of objects with the columns' names as keys. A column that an object has
// not is NULL.
type SystemTable struct {
	Name    string
	Columns []viewkeeper.Column
}

// SystemTables gives the tables of the schema vk. Where docs/http.md has a JSON
// answer with the same content, names and shapes are those of the answer.
func SystemTables() []SystemTable {
	const (
		text      = "VARCHAR"
		names     = "VARCHAR[]"
		number    = "UBIGINT"
		timestamp = "TIMESTAMP WITH TIME ZONE"
		columns   = `STRUCT("name" VARCHAR, "type" VARCHAR)[]`
		position  = `STRUCT("offset" BIGINT, "line" BIGINT, "column" BIGINT)`
	)
	table := func(name string, pairs ...string) SystemTable {
		t := SystemTable{Name: name}
		for i := 0; i < len(pairs); i += 2 {
			t.Columns = append(t.Columns, viewkeeper.Column{Name: pairs[i], Type: pairs[i+1]})
		}
		return t
	}
	return []SystemTable{
		table("definitions",
			"name", text, "kind", text, "id", number, "version", number, "columns", columns,
			"reads", `STRUCT("name" VARCHAR, "kind" VARCHAR)[]`, "read_by", names,
			"state", text, "sql", text, "comment", text, "history_length", number),
		table("columns", "definition", text, "position", "INTEGER", "name", text, "type", text),
		table("reads", "definition", text, "name", text, "kind", text),
		table("failures",
			"name", text, "stage", text, "code", text, "reason", text, "position", position, "root_cause", text, "since", number),
		table("decisions",
			"statement_id", text, "version", number, "offset", "BIGINT", "verdict", text, "code", text,
			"message", text, "position", position,
			"changed", `STRUCT("name" VARCHAR, "action" VARCHAR, "columns_before" `+columns+`, "columns_after" `+columns+`, "renamed_to" VARCHAR)[]`,
			"broken", `STRUCT("name" VARCHAR, "reason" VARCHAR, "position" `+position+`, "root_cause" VARCHAR)[]`,
			"repaired", names, "dropped", names,
			"warnings", `STRUCT("code" VARCHAR, "name" VARCHAR, "message" VARCHAR, "position" `+position+`)[]`,
			"author", text, "reason", text, "at", timestamp, "owner", text, "epoch", number,
			"engine", text, "base_digest", text, "sql", text),
		table("nodes",
			"node", text, "catalog", text, "http", text, "version", number, "digest", text, "build_digest", text,
			"view_state", text, "ready", "BOOLEAN", "ready_reasons", names, "degraded", names,
			"details", "MAP(VARCHAR, VARCHAR)", "stale_for", "DOUBLE", "definitions", "BIGINT",
			"broken", "BIGINT", "broken_definitions", names, "owner", text, "epoch", number,
			"engine", text, "base_digest", text, "at", timestamp, "since", timestamp,
			"lag", number, "lagging", "BOOLEAN", "digest_differs", "BOOLEAN", "base_differs", "BOOLEAN"),
		table("settings", "name", text, "value", text, "source", text),
	}
}

// References tells which tables of the schema vk a query may read, so that the
// caller knows what to put in [QueryRequest].VK. It looks at the words of the text
// only, which costs next to nothing and may name a table too many, never one too
// few: no text reads a table without naming it and its schema.
func References(sql string) []string {
	folded := viewkeeper.Fold(sql)
	if !strings.Contains(folded, vkSchema) {
		return nil
	}
	words := map[string]bool{}
	for _, t := range lex(folded) {
		if name, ok := t.name(folded); ok {
			words[name] = true
		}
	}
	if !words[vkSchema] {
		return nil
	}
	var tables []string
	for _, t := range SystemTables() {
		if words[t.Name] {
			tables = append(tables, t.Name)
		}
	}
	return tables
}

// createSystem makes the schema vk with its empty tables.
func createSystem(ctx context.Context, c *conn) error {
	statements := []string{"CREATE SCHEMA vk"}
	for _, t := range SystemTables() {
		columns := make([]string, len(t.Columns))
		for i, column := range t.Columns {
			columns[i] = viewkeeper.QuoteIdent(column.Name) + " " + column.Type
		}
		statements = append(statements, fmt.Sprintf("CREATE TABLE vk.%s (%s)", t.Name, strings.Join(columns, ", ")))
	}
	statements = append(statements, setApplied(0, 0))
	for _, s := range statements {
		if err := c.exec(ctx, s); err != nil {
			return fmt.Errorf("duckdb: %s: %w", s, err)
		}
	}
	return nil
}

// insertSystem puts a query's rows of the schema vk into its transaction.
func insertSystem(ctx context.Context, c *conn, rows map[string]json.RawMessage) error {
	for _, t := range SystemTables() {
		given, ok := rows[t.Name]
		if !ok || len(given) == 0 {
			continue
		}
		shape := make(map[string]string, len(t.Columns))
		names := make([]string, len(t.Columns))
		for i, column := range t.Columns {
			shape[column.Name] = column.Type
			names[i] = "r." + viewkeeper.QuoteIdent(column.Name)
		}
		structure, err := json.Marshal([]map[string]string{shape})
		if err != nil {
			return err
		}
		insert := fmt.Sprintf("INSERT INTO vk.%s SELECT %s FROM (SELECT unnest(from_json(?, %s)) AS r)",
			t.Name, strings.Join(names, ", "), quoteLiteral(string(structure)))
		st, err := c.prepare(ctx, insert)
		if err == nil {
			_, err = st.query(ctx, string(given))
			st.close()
		}
		if err != nil {
			return fmt.Errorf("the rows of vk.%s could not be given to the query: %v", t.Name, err)
		}
	}
	return nil
}

// checkSystem refuses rows of tables that do not exist.
func checkSystem(rows map[string]json.RawMessage) error {
	for name := range rows {
		if !slices.ContainsFunc(SystemTables(), func(t SystemTable) bool { return t.Name == name }) {
			return fmt.Errorf("vk.%s does not exist", name)
		}
	}
	return nil
}

// appliedAt is which commit of Apply a transaction sees.
type appliedAt struct {
	version viewkeeper.Version
	serial  uint64 // the commits of this engine, counted
}

// setApplied is the statement that sets it.
func setApplied(v viewkeeper.Version, serial uint64) string {
	return fmt.Sprintf("CREATE OR REPLACE MACRO %s() AS '%s %d'", appliedMacro, v, serial)
}

const readAppliedSQL = "SELECT " + appliedMacro + "()"

// readApplied reads it in a connection's transaction.
func readApplied(ctx context.Context, c *conn) (appliedAt, error) {
	rows, err := c.query(ctx, readAppliedSQL)
	if err != nil {
		return appliedAt{}, err
	}
	return parseApplied(rows)
}

// beginAt begins a transaction, and reads in it which commit it sees. It is one call
// into the engine, since each costs a short query more than its rows do.
func beginAt(ctx context.Context, c *conn) (appliedAt, error) {
	rows, err := c.scriptRows(ctx, "BEGIN; "+readAppliedSQL)
	if err != nil {
		return appliedAt{}, err
	}
	return parseApplied(rows)
}

func parseApplied(rows [][]string) (appliedAt, error) {
	if len(rows) != 1 {
		return appliedAt{}, fmt.Errorf("duckdb: %s gives %d rows", appliedMacro, len(rows))
	}
	first, second, _ := strings.Cut(rows[0][0], " ")
	version, err := viewkeeper.ParseVersion(first)
	if err != nil {
		return appliedAt{}, err
	}
	serial, err := strconv.ParseUint(second, 10, 64)
	return appliedAt{version, serial}, err
}
