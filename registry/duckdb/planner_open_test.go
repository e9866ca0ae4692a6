package duckdb

import (
	"testing"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// openUnlocked opens an instance that may do anything, for tests that make files.
func openUnlocked(t *testing.T, i *instance) {
	t.Helper()
	var config bindings.Config
	bindings.CreateConfig(&config)
	defer bindings.DestroyConfig(&config)
	var msg string
	if bindings.OpenExt("", &i.handle, config, &msg) == bindings.StateError {
		t.Fatal(msg)
	}
}
