package registry_test

import (
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

func rowOf(t testing.TB, version viewkeeper.Version, text string) viewkeeper.Row {
	t.Helper()
	stmt, err := ddl.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	c := stmt.(*viewkeeper.Create)
	return viewkeeper.Row{Name: c.Name, Version: version, Definition: &viewkeeper.Definition{Name: c.Name, Kind: c.Kind, SQL: c.SQL, ID: version}}
}
