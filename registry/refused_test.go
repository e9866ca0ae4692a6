package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// picky is an applier that refuses definitions by name, as an engine does whose
// files have vanished: all that it refuses of a call at once, or only the first.
type picky struct {
	views
	refuse map[string]bool
	single bool
	// nth, when not negative, refuses whatever definition is made as the n-th over
	// all calls, from then on.
	nth int
}

func (p *picky) Apply(ctx context.Context, version viewkeeper.Version, reset bool, changes []registry.Apply) error {
	var e registry.ApplyError
	for _, c := range changes {
		if c.Query == "" && c.Empty == nil {
			continue
		}
		if p.nth == 0 {
			p.refuse[c.Name.String()] = true
		}
		p.nth--
		if p.refuse[c.Name.String()] && (len(e.Refused) == 0 || !p.single) {
			e.Refused = append(e.Refused, registry.RefusedApply{Name: c.Name, Reason: "no such file"})
		}
	}
	if len(e.Refused) > 0 {
		return fmt.Errorf("the child: %w", &e)
	}
	return p.views.Apply(ctx, version, reset, changes)
}

// failed shows what is broken: "main.a", "main.b<main.a".
func failed(f *registry.Factory) string {
	var out []string
	for _, x := range f.Failures() {
		s := x.Name.String()
		if x.RootCause != nil {
			s += "<" + x.RootCause.String()
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// Whichever change the applier refuses, in a load or in a later change: that
// definition is broken with the applier's reason, what reads it is collateral, the
// rest is served at the new version, and all is well when the applier takes it.
func TestTheApplierRefusesTheNthChange(t *testing.T) {
	rows := rowsOf(t, star(3)...)
	readers := map[string]string{"main.root": "main.mid0<main.root main.mid1<main.root main.mid2<main.root main.root main.top0<main.root main.top1<main.root main.top2<main.root"}
	for i := range 3 {
		readers[fmt.Sprint("main.mid", i)] = fmt.Sprintf("main.mid%d main.top%d<main.mid%d", i, i, i)
		readers[fmt.Sprint("main.top", i)] = fmt.Sprint("main.top", i)
	}
	for n := range 14 { // 7 of the load, 7 of the change
		base, _ := newBase(t, quiet())
		p := &picky{refuse: map[string]bool{}, nth: n}
		var swaps []registry.Swap
		r := registry.New(base, registry.RegistryOptions{Applier: p, Swapped: func(s registry.Swap) { swaps = append(swaps, s) }})
		if err := r.Reload(t.Context(), 7, rows); err != nil {
			t.Fatal(n, err)
		}
		p.check(t, r.Current())
		change := rowOf(t, 8, "CREATE VIEW root AS SELECT 'x' AS a, a AS d FROM u")
		if n >= 7 && r.Current().Broken() > 0 {
			t.Fatalf("%d: %s", n, failed(r.Current()))
		}
		if err := r.Advance(t.Context(), 8, []viewkeeper.Row{change}); err != nil {
			t.Fatal(n, err)
		}
		p.check(t, r.Current())
		if r.Current().Version() != 8 || len(swaps) != 2 {
			t.Errorf("%d: at version %s after %d swaps", n, r.Current().Version(), len(swaps))
		}
		culprit := ""
		if len(p.refuse) != 1 {
			t.Errorf("%d: %d changes in all", n, 14+p.nth)
		}
		for name := range p.refuse {
			culprit = name
		}
		if got := failed(r.Current()); got != readers[culprit] {
			t.Errorf("%d: refused %s, broken: %s", n, culprit, got)
		}
		for _, x := range r.FailedDefinitions() {
			if x.Stage != registry.StageBuild || x.Code != viewkeeper.CodeBind || x.RootCause == nil && x.Reason != "no such file" {
				t.Errorf("%d: %+v", n, x)
			}
		}

		// Nothing comes of a retry while the applier says the same; then all does.
		if err := r.Retry(t.Context()); err != nil || len(swaps) != 2 {
			t.Errorf("%d: %v, %d swaps", n, err, len(swaps))
		}
		p.check(t, r.Current())
		clear(p.refuse)
		if err := r.Retry(t.Context()); err != nil || r.Current().Broken() > 0 {
			t.Errorf("%d: %v, broken: %s", n, err, failed(r.Current()))
		}
		p.check(t, r.Current())
	}
}

// What is applied again may be refused now, although nothing in the catalog
// changed: it is broken from then on.
func TestReapplyRefused(t *testing.T) {
	base, _ := newBase(t, quiet())
	p := &picky{refuse: map[string]bool{}, nth: -1}
	swaps := 0
	r := registry.New(base, registry.RegistryOptions{Applier: p, Swapped: func(registry.Swap) { swaps++ }})
	if err := r.Reload(t.Context(), 5, rowsOf(t, star(2)...)); err != nil {
		t.Fatal(err)
	}
	p.names = nil
	if err := r.Reapply(t.Context()); err != nil || swaps != 1 {
		t.Fatal(err, swaps)
	}
	p.check(t, r.Current())
	p.names, p.refuse["main.mid1"] = nil, true
	if err := r.Reapply(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.check(t, r.Current())
	if got := failed(r.Current()); got != "main.mid1 main.top1<main.mid1" || r.Current().Version() != 5 || swaps != 2 {
		t.Errorf("broken: %s at version %s after %d swaps", got, r.Current().Version(), swaps)
	}
	// It is tried again when what it reads changes, too.
	clear(p.refuse)
	if err := r.Advance(t.Context(), 6, []viewkeeper.Row{rowOf(t, 6, "CREATE VIEW root AS SELECT a, d, 2 AS two FROM u")}); err != nil {
		t.Fatal(err)
	}
	p.check(t, r.Current())
	if r.Current().Broken() > 0 {
		t.Error(failed(r.Current()))
	}
}

// An applier that names what it was not given helps nobody: that is its own
// trouble, and the last factory stays.
func TestTheApplierRefusesNothingOfOurs(t *testing.T) {
	base, _ := newBase(t, quiet())
	v := &views{err: &registry.ApplyError{Refused: []registry.RefusedApply{{Name: viewkeeper.MakeName("", "nobody"), Reason: "no"}}}}
	r := registry.New(base, registry.RegistryOptions{Applier: v})
	err := r.Reload(t.Context(), 2, rowsOf(t, "CREATE VIEW a AS SELECT a FROM u"))
	if err == nil || !strings.Contains(err.Error(), "staying at") || r.Current().Version() != 0 {
		t.Fatal(err, r.Current().Version())
	}
	if err := r.Reload(t.Context(), 2, rowsOf(t, "CREATE VIEW a AS SELECT a FROM u")); err != nil {
		t.Fatal(err)
	}
	v.check(t, r.Current())
	v.err = errors.New("disk full")
	if err := r.Retry(t.Context()); err != nil { // nothing is broken, nothing is applied
		t.Fatal(err)
	}
}

// TestRefusedAtRandom: whatever is refused when, one at a time or all at once, what
// the applier has is what the factory says, only what is refused is a root cause,
// and when all is taken again the factory is that of an applier that never refused.
func TestRefusedAtRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		p := &picky{refuse: map[string]bool{}, nth: -1, single: rapid.Bool().Draw(rt, "single")}
		r := registry.New(newModelBase(rt), registry.RegistryOptions{Applier: p})
		plain := registry.New(newModelBase(rt), registry.RegistryOptions{})
		rows := map[viewkeeper.Name]viewkeeper.Row{}
		for v := viewkeeper.Version(1); v < 15; v++ {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "name")
			from := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "u", "u"}).Draw(rt, "from")
			p.refuse[rapid.SampledFrom([]string{"main.a", "main.b", "main.c", "main.d", "main.e"}).Draw(rt, "flip")] = rapid.Bool().Draw(rt, "refuse")
			row := rowOf(t, v, fmt.Sprintf("CREATE VIEW %s AS SELECT a, %d AS n FROM %s", name, v, from))
			rows[row.Name] = row
			var all []viewkeeper.Row
			for _, row := range rows {
				all = append(all, row)
			}
			var err error
			switch rapid.IntRange(0, 3).Draw(rt, "how") {
			case 0:
				err = r.Reload(ctx, v, all)
			case 1:
				if err = r.Advance(ctx, v, []viewkeeper.Row{row}); err == nil {
					err = r.Retry(ctx)
				}
			case 2:
				p.names = nil
				if err = r.Reapply(ctx); err == nil {
					p.check(rt, r.Current())
					err = r.Advance(ctx, v, []viewkeeper.Row{row})
				}
			default:
				err = r.Advance(ctx, v, []viewkeeper.Row{row})
			}
			if err != nil {
				rt.Fatal(err)
			}
			if err := plain.Reload(ctx, v, all); err != nil {
				rt.Fatal(err)
			}
			p.check(rt, r.Current())
			for _, x := range r.FailedDefinitions() {
				d, _ := plain.Current().Definition(x.Name)
				if x.Reason == "no such file" && (x.RootCause != nil || !d.OK()) {
					rt.Fatalf("%+v, and %+v", x, d.Failure)
				}
			}
		}
		clear(p.refuse)
		if err := r.Retry(ctx); err != nil {
			rt.Fatal(err)
		}
		p.check(rt, r.Current())
		if got, want := failed(r.Current()), failed(plain.Current()); got != want || r.Current().BuildDigest() != plain.Current().BuildDigest() {
			rt.Fatalf("broken %q, want %q", got, want)
		}
	})
}
