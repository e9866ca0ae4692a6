package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
)

func TestMain(m *testing.M) {
	if engine.IsChild() {
		os.Exit(engine.Main())
	}
	os.Exit(m.Run())
}

// TestTable: what the table says of figures that met, missed and have no target.
func TestTable(t *testing.T) {
	var b strings.Builder
	err := printTable(&b, []Figure{
		{ID: "P1", What: "visible, p50", Got: 3.456, Baseline: 1.5, Unit: "ms", Against: "bare hop", Limit: 3.5, Target: "≤ hop + 2 ms", Note: "said once"},
		{ID: "P1", What: "visible, p99", Got: 30, Baseline: 4, Unit: "ms", Against: "bare hop", Limit: 19, Target: "≤ hop + 15 ms", Note: "said once"},
		{ID: "P5", What: "accepted", Got: 1234, Baseline: 1500, Unit: "/s", Against: "the judge", Limit: 1200, AtLeast: true, Target: "≥ 1200/s"},
		{ID: "P9", What: "owner's CPU", Got: 1.01, Unit: "×"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `| figure | what         | got     | baseline | against   | compared         | target        | met |
|--------|--------------|---------|----------|-----------|------------------|---------------|-----|
| P1     | visible, p50 | 3.46 ms | 1.50 ms  | bare hop  | 2.30 ×, +1.96 ms | ≤ hop + 2 ms  | yes |
| P1     | visible, p99 | 30 ms   | 4 ms     | bare hop  | 7.50 ×, +26 ms   | ≤ hop + 15 ms | NO  |
| P5     | accepted     | 1234/s  | 1500/s   | the judge | 0.82 ×, −266/s   | ≥ 1200/s      | yes |
| P9     | owner's CPU  | 1.01 ×  | –        | –         | –                | –             | –   |

P1: said once
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestParse: what the command line takes.
func TestParse(t *testing.T) {
	o, err := parse([]string{"-quick", "-only", "p1"}, io.Discard)
	if err != nil || o.n != 2000 || len(o.only) != 1 || o.only[0] != "P1" {
		t.Errorf("%+v %v", o, err)
	}
	for _, args := range [][]string{{"-only", "P77"}, {"more"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestHop takes some hops over a broker in this process.
func TestHop(t *testing.T) {
	b, err := broker.Start(t.Context(), "", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	env := &Env{Brokers: b.Addr(), Dir: t.TempDir(), Log: t.Logf}
	hop, err := env.NewHop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var taken durations
	for range 10 {
		d, err := hop.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, d)
	}
	if taken.at(.5) <= 0 || taken.at(.99) < taken.at(.5) {
		t.Errorf("hops: %v", taken)
	}
	if err := hop.Close(); err != nil {
		t.Error(err)
	}
}

// TestAncestor takes two builds of each of two small catalogs.
func TestAncestor(t *testing.T) {
	a, err := (&Env{N: 200}).Ancestor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a.Small != 10 || a.Large != 20 || a.SmallBuild <= 0 || a.LargeBuild <= 0 {
		t.Errorf("%+v", a)
	}
	if b := a.Build(200); b != 10*a.LargeBuild || a.Visible(200) != 3*b+30*time.Second {
		t.Errorf("%v at 200 of %+v", b, a)
	}
}

// TestParseStat: a process's name may hold anything.
func TestParseStat(t *testing.T) {
	pid, parent, took, ok := parseStat("42 (a ) (b) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 8 9 20 0 12 0 1 1 1")
	if !ok || pid != 42 || parent != 7 || took != 2*time.Second {
		t.Errorf("%d %d %v %v", pid, parent, took, ok)
	}
	for _, text := range []string{"", "42 (a", "42 (a) S 7", "x (a) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 8"} {
		if _, _, _, ok := parseStat(text); ok {
			t.Errorf("%q is read", text)
		}
	}
}
