package registrytest_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "seed of TestRandomChanges; 0 takes one from the clock and prints it")
	changesFlag = flag.Int("changes", 3000, "number of changes that TestRandomChanges makes")
)

// TestRandomChanges makes random changes to random catalogs. After each one the
// judge, which plans only what a change can affect, and a build of everything from
// nothing in a fresh database with real views must agree: on the verdict, on every
// schema, on what reads what, and on what broke and why. The judge over the model
// planner must decide the same. Every few changes CheckDependentsSurvive has its
// say too, and the base changes under the catalog.
func TestRandomChanges(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1e9
	}
	changes := *changesFlag
	if testing.Short() {
		changes = min(changes, 300)
	}
	repeat := fmt.Sprintf("go test ./registry/registrytest -run 'TestRandomChanges' -seed %d -changes %d", seed, changes)
	t.Logf("repeat with: %s", repeat)
	const worlds = 4
	for i := range worlds {
		t.Run(fmt.Sprint("world", i), func(t *testing.T) {
			t.Parallel()
			r := newRace(t, rand.New(rand.NewPCG(seed, uint64(i))), repeat)
			for range (changes + worlds - 1) / worlds {
				r.step(t)
				if t.Failed() {
					t.Logf("repeat with: %s", repeat)
					return
				}
			}
			t.Logf("%v", r.counts)
		})
	}
}

// contender is a judge over one planner.
type contender struct {
	name    string
	planner registry.Planner
	base    *registry.Base
	catalog *registry.Catalog
}

// race runs the judges beside the real build.
type race struct {
	gen    *generator
	real   *realEngine
	judges []*contender
	step_  int
	offset int64
	counts map[string]int
	// until is the step at which a changed base changes back.
	until int
	log   []string
}

func usualBase() tables {
	out := tables{}
	for _, r := range registrytest.BaseRelations()[:3] {
		out[r.Name] = r.Columns
	}
	out[viewkeeper.MakeName("s1", "u")] = []viewkeeper.Column{{Name: "a", Type: "BIGINT"}, {Name: "b", Type: "VARCHAR"}}
	return out
}

func newRace(t *testing.T, random *rand.Rand, repeat string) *race {
	real, err := openReal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(real.close)
	r := &race{
		gen:    &generator{rand: random, base: usualBase(), defs: definitions{}, built: state{}},
		real:   real,
		judges: []*contender{{name: "duckdb"}, {name: "model"}},
		counts: map[string]int{},
	}
	for _, c := range r.judges {
		r.load(t, c)
	}
	t.Cleanup(func() {
		for _, c := range r.judges {
			c.planner.Close()
		}
		if t.Failed() && len(r.log) > 0 {
			t.Logf("the catalog before the last change:\n%s", r.gen.listing())
		}
	})
	return r
}

// load opens a contender over the base of now, with the world's definitions.
func (r *race) load(t *testing.T, c *contender) {
	if c.planner != nil {
		c.planner.Close()
	}
	var err error
	switch c.name {
	case "duckdb":
		c.planner, err = openEngine(t, r.gen.base.sql())
	case "model":
		c.planner = registrytest.NewModel(r.gen.base.relations()...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.base, err = registry.NewBase(t.Context(), c.planner, registry.BaseOptions{}); err != nil {
		t.Fatal(err)
	}
	c.catalog, err = registry.LoadCatalog(t.Context(), c.base, rowsOf(r.gen.defs), registry.CatalogOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// rowsOf makes rows of the world's own definitions.
func rowsOf(defs definitions) []viewkeeper.Row {
	var rows []viewkeeper.Row
	for _, n := range defs.names() {
		d := defs[n]
		rows = append(rows, viewkeeper.Row{Name: n, Version: 1, Definition: &viewkeeper.Definition{
			Name: n, Kind: viewkeeper.KindView, SQL: d.text(), Comment: d.comment, ID: 1,
		}})
	}
	return rows
}

// step makes one change, and now and then one to the base before it.
func (r *race) step(t *testing.T) {
	r.step_++
	switch {
	case r.until > 0 && r.step_ >= r.until:
		r.until = 0
		r.rebase(t, usualBase())
	case r.until == 0 && r.gen.one(60):
		r.until = r.step_ + 5 + r.gen.rand.IntN(20)
		r.rebase(t, r.gen.otherBase())
	}
	set := r.gen.next()
	text := textOf(set)
	r.offset++
	sub := viewkeeper.Submission{Key: fmt.Sprint("k", r.offset), ID: fmt.Sprint("t:", r.offset), SQL: text, Offset: r.offset}
	before := map[string]string{}
	var outcomes []*registry.Outcome
	for _, c := range r.judges {
		before[c.name] = c.catalog.Snapshot().BuildDigest()
		out, err := c.catalog.Judge(t.Context(), sub)
		if err != nil {
			t.Fatalf("%s: %s: %v", c.name, text, err)
		}
		outcomes = append(outcomes, out)
	}
	if a, b := said(outcomes[0].Decision), said(outcomes[1].Decision); a != b {
		t.Errorf("the judges differ on\n%s\n%s says %s\n%s\n%s says %s\n%s", text,
			r.judges[0].name, a, outcomes[0].Decision.Message, r.judges[1].name, b, outcomes[1].Decision.Message)
		return
	}
	r.compare(t, set, text, outcomes[0])
}

// said is what two judges must agree on: all of the decision but the words and
// places of reasons.
func said(d viewkeeper.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", d.Verdict, d.Code)
	for _, c := range d.Changed {
		fmt.Fprintf(&b, "\n  %s %s %v -> %v %v", c.Action, c.Name, c.ColumnsBefore, c.ColumnsAfter, c.RenamedTo)
	}
	for _, x := range d.Broken {
		fmt.Fprintf(&b, "\n  breaks %s because of %v", x.Name, x.RootCause)
	}
	fmt.Fprintf(&b, "\n  repairs %v drops %v", d.Repaired, d.Dropped)
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "\n  warns %s %s", w.Code, w.Name)
	}
	return b.String()
}

// compare holds the judge's outcome against the expectation and the real build.
func (r *race) compare(t *testing.T, set []change, text string, out *registry.Outcome) {
	g, dec := r.gen, out.Decision
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s\n%s\nthe judge: %s %s\n%s", fmt.Sprintf(format, args...), text, said(dec), dec.Message, g.listing())
	}
	e := expect(set, g.defs, g.base)
	r.log = append(r.log, text)
	switch {
	case e.refused != nil:
		r.counts["precondition"]++
		if dec.Verdict != viewkeeper.Refused || !slices.Contains(e.refused, dec.Code) {
			fail("want a refusal with one of %v", e.refused)
		}
		return
	case e.unchanged:
		r.counts["unchanged"]++
		if dec.Verdict != viewkeeper.Unchanged {
			fail("want unchanged")
		}
		return
	}
	after, err := r.real.build(t.Context(), g.base, e.post)
	if err != nil {
		t.Fatal(err)
	}
	broken, repaired, output := e.differences(g.built, after)
	if dec.Code == viewkeeper.CodeRenameInexact && e.inexact {
		r.counts["inexact"]++
		return
	}
	if len(broken) > 0 {
		r.counts["refused"]++
		r.refusal(t, e, after, broken, dec, fail)
		r.survives(t, e, broken, nil, fail)
		return
	}
	if dec.Verdict != viewkeeper.Accepted {
		fail("want it accepted")
		return
	}
	r.counts["accepted"]++
	if got := dec.Repaired; !slices.Equal(got, repaired) {
		fail("repaired %v, want %v", got, repaired)
	}
	var changed []viewkeeper.Name
	for _, c := range dec.Changed {
		if c.Action == viewkeeper.ActionOutputChanged {
			changed = append(changed, c.Name)
			if !reflect.DeepEqual(c.ColumnsBefore, g.built[c.Name].columns) || !reflect.DeepEqual(c.ColumnsAfter, after[c.Name].columns) {
				fail("%s: output %v -> %v, want %v -> %v", c.Name, c.ColumnsBefore, c.ColumnsAfter, g.built[c.Name].columns, after[c.Name].columns)
			}
		}
	}
	if !slices.Equal(changed, output) {
		fail("output changed of %v, want %v", changed, output)
	}
	r.rows(e, out, fail)
	r.survives(t, e, nil, repaired, fail)
	g.defs, g.built = e.post, after
	for _, c := range r.judges {
		sameState(t, c.name+" after "+text, c.catalog.Snapshot(), g, after)
	}
}

// differences gives what built before and does not after, or is written and does
// not; what is repaired without being written; and whose output differs without
// being written.
func (e *expectation) differences(before, after state) (broken, repaired, output []viewkeeper.Name) {
	for _, n := range slices.SortedFunc(maps.Keys(e.post), viewkeeper.Name.Compare) {
		was := n
		old, moved := e.moved[n]
		if moved {
			was = old
		}
		b, a := before[was], after[n]
		switch {
		case !a.ok() && (b.ok() || e.written[n]):
			broken = append(broken, n)
		case a.ok() && b != nil && !b.ok() && !moved:
			repaired = append(repaired, n)
		case a.ok() && b.ok() && !e.touched[n] && !reflect.DeepEqual(a.columns, b.columns):
			output = append(output, n)
		}
	}
	return broken, repaired, output
}

// refusal checks a refusal for what would break.
func (r *race) refusal(t *testing.T, e *expectation, after state, broken []viewkeeper.Name, dec viewkeeper.Decision, fail func(string, ...any)) {
	if dec.Verdict != viewkeeper.Refused {
		fail("want a refusal: %v would break", broken)
		return
	}
	own := slices.ContainsFunc(broken, func(n viewkeeper.Name) bool { return e.written[n] })
	switch dec.Code {
	case viewkeeper.CodeBind:
		if !own {
			fail("BIND, and yet what is written builds; broken is %v", broken)
		}
	case viewkeeper.CodeCycle:
		if !slices.ContainsFunc(after.failing(), func(n viewkeeper.Name) bool { return after[n].cyclic || after[n].why != "" && !after[n].root }) {
			fail("CYCLE, and there is none")
		}
	case viewkeeper.CodeRenameInexact:
		if len(e.moved) == 0 {
			fail("RENAME_INEXACT without a rename")
		}
	case viewkeeper.CodeBreaksDependents:
		if own {
			fail("BREAKS_DEPENDENTS, and yet something written does not build: %v", broken)
			return
		}
		sameBroken(dec.Broken, broken, after, fail)
	default:
		fail("%v would break, and the code is %s", broken, dec.Code)
	}
}

// sameBroken compares a list of what breaks. Who reads nothing broken is a root
// cause; of who does, only the planner could say whether it would fail alone.
func sameBroken(list []viewkeeper.Broken, want []viewkeeper.Name, after state, fail func(string, ...any)) {
	var got []viewkeeper.Name
	for _, b := range list {
		got = append(got, b.Name)
		a := after[b.Name]
		if a.ok() {
			continue // not in want, reported below
		}
		if (a.root || a.cyclic) && b.RootCause != nil && !a.cyclic {
			fail("%s is a root cause (%s), the list blames %s", b.Name, a.why, b.RootCause)
		}
		if b.RootCause != nil && after[*b.RootCause].ok() {
			fail("%s is blamed on %s, which builds", b.Name, b.RootCause)
		}
	}
	slices.SortFunc(got, viewkeeper.Name.Compare)
	if !slices.Equal(got, want) {
		fail("breaks %v, want %v", got, want)
	}
}

// rows compares the rows that are to be written with the world's own texts.
func (r *race) rows(e *expectation, out *registry.Outcome, fail func(string, ...any)) {
	var got []viewkeeper.Name
	for _, row := range out.Rows {
		got = append(got, row.Name)
		d := e.post[row.Name]
		switch {
		case !row.Live() && d != nil || row.Live() && d == nil:
			fail("row %s: live %v", row.Name, row.Live())
		case row.Live() && row.Definition.SQL != d.text() && !(len(e.moved) > 0 && d.writtenAs(row.Definition.SQL, slices.Collect(maps.Values(e.moved)))):
			fail("row %s is %s, want %s", row.Name, row.Definition.SQL, d.text())
		case row.Live() && !reflect.DeepEqual(row.Definition.Comment, d.comment):
			fail("row %s: comment differs", row.Name)
		}
	}
	want := slices.SortedFunc(maps.Keys(e.touched), viewkeeper.Name.Compare)
	if !slices.Equal(got, want) {
		fail("rows %v, want %v", got, want)
	}
}

// writtenAs takes over how a rename wrote the names that the definition reads, with
// or without a schema and an alias, when that gives the text. What they mean is
// not its to choose.
func (d *definition) writtenAs(text string, old []viewkeeper.Name) bool {
	refs := d.body.refs()
	aliases := []string{""}
	for _, n := range old {
		aliases = append(aliases, " AS "+n.View)
	}
	var try func(i int) bool
	try = func(i int) bool {
		if i == len(refs) {
			return d.text() == text
		}
		was := *refs[i]
		for _, qualified := range []bool{was.qualified, true} {
			for _, alias := range append([]string{was.alias}, aliases...) {
				refs[i].qualified, refs[i].alias = qualified, alias
				if try(i + 1) {
					return true
				}
			}
		}
		*refs[i] = was
		return false
	}
	return try(0)
}

// survives asks CheckDependentsSurvive about the same change, every few steps.
func (r *race) survives(t *testing.T, e *expectation, broken, repaired []viewkeeper.Name, fail func(string, ...any)) {
	if r.step_%5 != 0 || len(e.moved) > 0 {
		return // it knows nothing of renames: the old name is gone, the new one is new
	}
	post := e.post
	for _, n := range broken {
		if r.gen.defs[n] == nil {
			return // a new definition that does not build is no dependent
		}
	}
	s, err := registry.CheckDependentsSurvive(t.Context(), r.judges[0].base, rowsOf(r.gen.defs), rowsOf(post))
	if err != nil {
		t.Fatal(err)
	}
	r.counts["survival"]++
	var got []viewkeeper.Name
	for _, b := range s.Broken {
		got = append(got, b.Name)
	}
	slices.SortFunc(got, viewkeeper.Name.Compare)
	var want []viewkeeper.Name
	for _, n := range broken {
		if r.gen.built[n].ok() {
			want = append(want, n)
		}
	}
	if !slices.Equal(got, want) {
		fail("CheckDependentsSurvive breaks %v, want %v", got, want)
	}
	if broken == nil && !slices.Equal(s.Repaired, repaired) {
		fail("CheckDependentsSurvive repairs %v, want %v", s.Repaired, repaired)
	}
}

// rebase changes the base under the catalog: what no longer builds is broken, with
// its root cause, and the rest is served.
func (r *race) rebase(t *testing.T, base tables) {
	g := r.gen
	g.base = base
	var err error
	if g.built, err = r.real.build(t.Context(), base, g.defs); err != nil {
		t.Fatal(err)
	}
	r.counts["bases"]++
	r.counts["broken by a base"] += len(g.built.failing())
	for _, c := range r.judges {
		r.load(t, c)
		sameState(t, c.name+" after the base changed", c.catalog.Snapshot(), g, g.built)
	}
}

// otherBase takes a column, a table or a type from the base, or adds a column.
func (g *generator) otherBase() tables {
	base := usualBase()
	for range 1 + g.rand.IntN(2) {
		n := pick(g, base.names())
		cols := slices.Clone(base[n])
		i := g.rand.IntN(len(cols))
		switch g.rand.IntN(4) {
		case 0:
			if len(base) > 1 {
				delete(base, n)
				continue
			}
		case 1:
			if len(cols) > 1 {
				cols = slices.Delete(cols, i, i+1)
			}
		case 2:
			cols[i].Type = pick(g, []string{"INTEGER", "VARCHAR", "BIGINT"})
		case 3:
			cols = append(cols, viewkeeper.Column{Name: fmt.Sprint("extra", len(cols)), Type: "VARCHAR"})
		}
		base[n] = cols
	}
	return base
}

// sameState compares a factory with the real build, definition by definition.
func sameState(t *testing.T, what string, f *registry.Factory, g *generator, want state) {
	t.Helper()
	if f.Len() != len(g.defs) {
		t.Errorf("%s: %d definitions, want %d", what, f.Len(), len(g.defs))
	}
	for d := range f.Definitions() {
		n := d.Row.Name
		w := want[n]
		if w == nil {
			t.Errorf("%s: %s should not be there", what, n)
			continue
		}
		if d.OK() != w.ok() || !reflect.DeepEqual(d.Columns, w.columns) {
			t.Errorf("%s: %s gives %v (%+v), want %v (%s)\n%s", what, n, d.Columns, d.Failure, w.columns, w.why, g.listing())
		}
		if w.ok() {
			var got []viewkeeper.Name
			for _, r := range d.Reads {
				name, err := viewkeeper.ParseName(r.Name)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, name)
			}
			slices.SortFunc(got, viewkeeper.Name.Compare)
			if !slices.Equal(got, w.reads) {
				t.Errorf("%s: %s reads %v, want %v", what, n, got, w.reads)
			}
		} else if !d.OK() && w.root && !w.cyclic && d.Failure.RootCause != nil {
			t.Errorf("%s: %s fails by itself (%s), blamed is %s", what, n, w.why, d.Failure.RootCause)
		}
	}
}

// listing shows the world for a report.
func (g *generator) listing() string {
	var b strings.Builder
	b.WriteString(g.base.sql())
	for _, n := range g.defs.names() {
		why := ""
		if s := g.built[n]; !s.ok() && s != nil {
			why = "  -- broken: " + s.why
		}
		fmt.Fprintf(&b, "%s;%s\n", g.defs[n].text(), why)
	}
	return b.String()
}
