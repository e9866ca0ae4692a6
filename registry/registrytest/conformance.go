package registrytest

import (
	"context"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Subset says which parts of the dialect a planner leaves out. The suite then
// skips the clauses that need them; the zero value is a planner with all.
type Subset struct {
	// Dialect leaves out all that [Model] does not know: macros, user types, table
	// functions, pivots, nested types and what the gate refuses.
	Dialect bool
}

// TestPlanner holds a planner to the contract of [registry.Planner]. open gives a
// fresh planner over [BaseSQL] with an empty scratch catalog; the suite closes it.
//
// Clauses are named after what the registry relies on. A planner that passes can
// stand behind the law in place of any other, in this process or another.
func TestPlanner(t *testing.T, open func(t *testing.T) registry.Planner, without Subset) {
	for _, c := range []struct {
		name string
		full bool // needs the whole dialect
		run  func(p *probe)
	}{
		{"DescribeIsStable", false, describeIsStable},
		{"DescribeListsMacrosAndTypes", true, describeListsMacros},
		{"ParseIsPure", false, parseIsPure},
		{"ReferencesHavePlaces", false, referencesHavePlaces},
		{"ReferencesOfTheWholeDialect", true, referencesOfDialect},
		{"ParseErrorsStayWithTheirQuery", false, parseErrorsStay},
		{"VolatileIsFound", false, volatileIsFound},
		{"TheGateHolds", true, theGateHolds},
		{"StubsAreVisible", false, stubsAreVisible},
		{"TrialsAreUndone", false, trialsAreUndone},
		{"TrialsAreKept", false, trialsAreKept},
		{"TrialsAddUp", false, trialsAddUp},
		{"StubsAreReplacedAndRemoved", false, stubsReplaced},
		{"ResetEmpties", false, resetEmpties},
		{"NamesAreQualified", false, namesAreQualified},
		{"SchemasComeAndGo", false, schemasComeAndGo},
		{"ErrorsHavePlaces", false, errorsHavePlaces},
		{"UnknownThingsAreBIND", false, unknownThings},
		{"OneErrorPoisonsNothing", false, oneErrorPoisonsNothing},
		{"ColumnLists", false, columnLists},
		{"RepeatedColumnsAreNumbered", false, repeatedColumns},
		{"StubsRoundTrip", false, stubsRoundTrip},
		{"StubsRoundTripAnyType", true, stubsRoundTripAnyType},
		{"ParquetTypes", false, parquetTypes},
		{"MergingTwice", true, mergingTwice},
		{"MergingTwiceLeavesTheTrial", true, mergingLeavesTheTrial},
		{"ManyStubs", false, manyStubs},
		{"EmptyCalls", false, emptyCalls},
		{"CancelledCalls", false, cancelledCalls},
		{"ClosedPlanner", false, closedPlanner},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.full && without.Dialect {
				t.Skip("needs the whole dialect")
			}
			p := &probe{T: t, planner: open(t), full: !without.Dialect}
			defer p.planner.Close()
			c.run(p)
		})
	}
}

// probe is a planner with the calls as the suite makes them: an error of the
// engine itself ends the test.
type probe struct {
	*testing.T
	planner registry.Planner
	full    bool
}

func (p *probe) describe() *registry.Engine {
	p.Helper()
	e, err := p.planner.Describe(p.Context())
	p.must(err)
	return e
}

func (p *probe) parse(texts ...string) []registry.Parsed {
	p.Helper()
	queries := make([]registry.Query, len(texts))
	for i, text := range texts {
		queries[i].Text = text
	}
	out, err := p.planner.Parse(p.Context(), queries)
	p.must(err)
	if len(out) != len(queries) {
		p.Fatalf("Parse of %d queries gave %d answers", len(queries), len(out))
	}
	return out
}

func (p *probe) bind(stubs []registry.Stub, queries ...registry.Query) []registry.Bound {
	p.Helper()
	out, err := p.planner.Bind(p.Context(), stubs, queries)
	p.must(err)
	if len(out) != len(queries) {
		p.Fatalf("Bind of %d queries gave %d answers", len(queries), len(out))
	}
	return out
}

// columns binds one text without a change to the catalog.
func (p *probe) columns(text string) registry.Bound {
	p.Helper()
	return p.bind(nil, registry.Query{Text: text})[0]
}

// binds fails the test unless text gives exactly these columns, name and type in
// turn.
func (p *probe) binds(text string, want ...string) {
	p.Helper()
	got := p.columns(text)
	if got.Err != nil {
		p.Errorf("%s: %v", text, got.Err)
		return
	}
	p.sameColumns(text, got.Columns, want...)
}

func (p *probe) sameColumns(what string, got []viewkeeper.Column, want ...string) {
	p.Helper()
	var flat []string
	for _, c := range got {
		flat = append(flat, c.Name, c.Type)
	}
	if len(flat) != len(want) {
		p.Errorf("%s: columns %q, want %q", what, flat, want)
		return
	}
	for i := range flat {
		if flat[i] != want[i] {
			p.Errorf("%s: columns %q, want %q", what, flat, want)
			return
		}
	}
}

// refused fails the test unless text does not bind.
func (p *probe) refused(text string, code viewkeeper.Code) *registry.PlanError {
	p.Helper()
	err := p.columns(text).Err
	switch {
	case err == nil:
		p.Errorf("%s: bound, want %s", text, code)
	case err.Code != code:
		p.Errorf("%s: %v, want %s", text, err, code)
	case err.Message == "":
		p.Errorf("%s: refused without a message", text)
	case err.At < -1 || err.At > len(text):
		p.Errorf("%s: place %d is outside the text", text, err.At)
	}
	return err
}

func (p *probe) settle(keep bool) {
	p.Helper()
	p.must(p.planner.Settle(p.Context(), keep))
}

func (p *probe) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// stub makes a change to the scratch catalog; without columns it removes the stub.
func stub(name string, columns ...string) registry.Stub {
	r := Relation(name, columns...)
	return registry.Stub{Name: r.Name, Columns: r.Columns}
}

func stubs(s ...registry.Stub) []registry.Stub { return s }
