package duckdb

import (
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

// TestGuess: the engine's guess at an unknown relation, which may be one that was
// dropped, is not passed on; ours is one of those that are there.
func TestGuess(t *testing.T) {
	const unknown = "Table with name c33 does not exist!"
	said := tidy("Table with name c33 does not exist!\nDid you mean \"memory.c33\"?\n\nLINE 1: SELECT * FROM c33\n                      ^")
	if said != unknown {
		t.Errorf("of the engine's message is left %q", said)
	}
	for _, c := range []struct{ there, want string }{
		{"main.a1 s2.zz", unknown},
		{"main.a33 main.c34 main.c43", unknown + ` Did you mean "a33"?`},
		{"main.c34 s2.c33 s1.c33", unknown + ` Did you mean "s1.c33"?`},
		{"s2.c34 main.c34 s1.c34", unknown + ` Did you mean "c34"?`},
	} {
		var there []viewkeeper.Name
		for _, n := range strings.Fields(c.there) {
			name, err := viewkeeper.ParseName(n)
			if err != nil {
				t.Fatal(err)
			}
			there = append(there, name)
		}
		for range 5 { // in whatever order
			there = append(there[1:], there[0])
			if got := guess(said, slices.Values(there)); got != c.want {
				t.Errorf("with %s: %s", c.there, got)
			}
		}
	}
	if other := "Referenced column x not found"; guess(other, slices.Values([]viewkeeper.Name{})) != other {
		t.Error("another message was changed")
	}
}

func TestNobodyIsToldToInstall(t *testing.T) {
	const said = "Table Function with name \"x_scan\" is not in the catalog, but it exists in the x extension.\n\nPlease try installing and loading the x extension by running:\nINSTALL x;\nLOAD x;\n\n"
	want := "Table Function with name \"x_scan\" is of the x extension, and engines here load none; files of the lake are read as Parquet, CSV or JSON"
	if got := tidy(said); got != want {
		t.Errorf("%s", got)
	}
}
