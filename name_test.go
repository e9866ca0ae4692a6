package viewkeeper_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

func TestParseName(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"v", "main.v"},
		{"V", "main.v"},
		{"S.V", "s.v"},
		{`"S"."V"`, "s.v"},
		{`"Mixed Case"`, `main."mixed case"`},
		{`"a.b"`, `main."a.b"`},
		{`s."say ""hi"""`, `s."say ""hi"""`},
		{"café", `main."café"`},
		{"9lives", `main."9lives"`},
	} {
		n, err := viewkeeper.ParseName(c.in)
		if err != nil || n.String() != c.want {
			t.Errorf("ParseName(%q) = %v, %v; want %s", c.in, n, err, c.want)
			continue
		}
		again, err := viewkeeper.ParseName(n.String())
		if err != nil || again != n {
			t.Errorf("ParseName(%q) = %v, %v; it does not come back as %v", n, again, err, n)
		}
	}
	for _, in := range []string{"", ".", "a.", ".a", "a.b.c", `"a`, `"a"b`, "a b", "a;b", `""`, "a\nb"} {
		if n, err := viewkeeper.ParseName(in); viewkeeper.CodeOf(err) != viewkeeper.CodeName {
			t.Errorf("ParseName(%q) = %v, %v; want an error with code NAME", in, n, err)
		}
	}
}

func TestNameValidate(t *testing.T) {
	long := strings.Repeat("a", viewkeeper.MaxNamePart)
	for _, ok := range []string{"v", "_v", "report.daily", "v9", long, "sources", "x_pg_"} {
		n, err := viewkeeper.ParseName(ok)
		if err == nil {
			err = n.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, bad := range []string{
		`"café"`, `"a b"`, "9v", long + "a", long + "a.v",
		"source", "s.source", "__v", "vk_x", "duckdb_views", "sqlite_master", "pg_class", "pragma_x", "__s.v", "pg_temp.v",
		"vk.definitions", "information_schema.tables", "pg_catalog.pg_class", "temp.v", "system.v",
	} {
		n, err := viewkeeper.ParseName(bad)
		if err == nil {
			err = n.Validate()
		}
		if viewkeeper.CodeOf(err) != viewkeeper.CodeName {
			t.Errorf("%s: %v; want code NAME", bad, err)
		}
	}
}

func TestNameInJSON(t *testing.T) {
	in := map[string]viewkeeper.Name{"n": {Schema: "s", View: "weird one"}, "zero": {}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]viewkeeper.Name
	if err := json.Unmarshal(b, &out); err != nil || out["n"] != in["n"] || out["zero"] != in["zero"] {
		t.Fatalf("%s became %v, %v", b, out, err)
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"v", "s.v", `"a""b".c`, "a.b.c", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := viewkeeper.ParseName(s)
		if err != nil {
			return
		}
		if again, err := viewkeeper.ParseName(n.String()); err != nil || again != n {
			t.Fatalf("%q gives %v, whose text gives %v, %v", s, n, again, err)
		}
	})
}
