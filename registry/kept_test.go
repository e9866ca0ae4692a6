package registry_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// kept are answers in memory. damage, when set, changes what is found.
type kept struct {
	answers map[[32]byte]string
	damage  func(string) string
}

func (k *kept) Lookup(key [32]byte) string {
	found := k.answers[key]
	if found != "" && k.damage != nil {
		return k.damage(found)
	}
	return found
}

func answersOf(f *registry.Factory) *kept {
	k := &kept{answers: map[[32]byte]string{}}
	for key, answer := range f.Answers() {
		k.answers[key] = string(answer)
	}
	return k
}

// TestRecallAsksNothing: a start with the answers of the run before makes no call on
// the planner, and keeps the same answers again.
func TestRecallAsksNothing(t *testing.T) {
	for _, n := range []int{10, 1000} {
		texts := append(star(n), materialized("m", "SELECT a, ts FROM {source}"), "CREATE VIEW over_m AS SELECT * FROM m")
		rows := rowsOf(t, texts...)
		base, _ := newBase(t, quiet())
		first := registry.New(base, registry.RegistryOptions{})
		if err := first.Reload(t.Context(), 1, rows); err != nil {
			t.Fatal(err)
		}
		if f := first.FailedDefinitions(); len(f) > 0 {
			t.Fatalf("%v", f[0])
		}
		base, planner := newBase(t, quiet())
		planner.took()
		again := registry.New(base, registry.RegistryOptions{})
		again.Recall(answersOf(first.Current()))
		if err := again.Reload(t.Context(), 1, rows); err != nil {
			t.Fatal(err)
		}
		if got, want := planner.took(), "parse 0/0 bind 0/0 stubs 0 settle 0"; got != want {
			t.Errorf("%d definitions: asked %s, want %s", len(rows), got, want)
		}
		if got, want := facts(again.Current()), facts(first.Current()); got != want {
			t.Errorf("with answers:\n%s\nwithout:\n%s", got, want)
		}
		if !maps.Equal(answersOf(again.Current()).answers, answersOf(first.Current()).answers) {
			t.Error("other answers are kept of the same factory")
		}
		// And it goes on from there.
		if err := again.Advance(t.Context(), 2, rowsOf(t, "CREATE VIEW mid7 AS SELECT a, d FROM root")); err != nil {
			t.Fatal(err)
		}
		if f := again.FailedDefinitions(); len(f) > 0 {
			t.Errorf("%v", f[0])
		}
	}
}

// TestRecallEqualsBuild: whatever catalog the answers are of, and whatever became of
// their bytes, a registry that has them has the factory that is built without them.
func TestRecallEqualsBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		rows := map[viewkeeper.Name]viewkeeper.Row{}
		draw := func(version viewkeeper.Version, n int) []viewkeeper.Row {
			for range n {
				name := drawName(t)
				sql := fmt.Sprintf("CREATE VIEW %s AS %s", name, drawBody(t, nil))
				rows[name] = viewkeeper.Row{Name: name, Version: version, Definition: &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: sql, ID: version}}
			}
			return slices.Collect(maps.Values(rows))
		}
		before, err := registry.BuildFactory(ctx, newModelBase(t), draw(1, 12), registry.Probe)
		if err != nil {
			t.Fatal(err)
		}
		k := answersOf(before)
		all := draw(2, rapid.IntRange(0, 4).Draw(t, "changes"))
		r := registry.New(newModelBase(t), registry.RegistryOptions{})
		r.Recall(k)
		if err := r.Reload(ctx, 2, all); err != nil {
			t.Fatal(err)
		}
		want, err := registry.BuildFactory(ctx, newModelBase(t), all, registry.Probe)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := facts(r.Current()), facts(want); got != want {
			t.Fatalf("with answers:\n%s\nwithout:\n%s", got, want)
		}
	})
}

// TestRecallOfAnswersCutShort: whoever keeps answers gives them back whole or not at
// all; what is cut short or runs on is taken for none even so, and nothing breaks.
func TestRecallOfAnswersCutShort(t *testing.T) {
	rows := rowsOf(t, append(star(20), materialized("m", "SELECT a, ts FROM {source}"))...)
	base, _ := newBase(t, quiet())
	first := registry.New(base, registry.RegistryOptions{})
	if err := first.Reload(t.Context(), 1, rows); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		k := answersOf(first.Current())
		var mu sync.Mutex
		k.damage = func(s string) string {
			mu.Lock()
			defer mu.Unlock()
			if rng.IntN(2) == 0 {
				return s[:rng.IntN(len(s))]
			}
			return s + "\x00"
		}
		base, _ := newBase(t, quiet())
		again := registry.New(base, registry.RegistryOptions{})
		again.Recall(k)
		if err := again.Reload(t.Context(), 1, rows); err != nil {
			t.Fatal(err)
		}
		if got, want := facts(again.Current()), facts(first.Current()); got != want {
			t.Fatalf("with answers cut short:\n%s\nwithout:\n%s", got, want)
		}
	}
}

// TestAnswersOfAnother: a planner that is not the one that answered finds nothing.
func TestAnswersOfAnother(t *testing.T) {
	rows := rowsOf(t, star(3)...)
	base, _ := newBase(t, quiet())
	first := registry.New(base, registry.RegistryOptions{})
	if err := first.Reload(t.Context(), 1, rows); err != nil {
		t.Fatal(err)
	}
	k := answersOf(first.Current())
	if len(k.answers) == 0 {
		t.Fatal("no answer is kept")
	}
	for what, change := range map[string]func(*registry.Engine){
		"another engine":           func(e *registry.Engine) { e.Name += "x" },
		"another base":             func(e *registry.Engine) { e.BaseDigest += "x" },
		"another program":          func(e *registry.Engine) { e.Answers += "x" },
		"one that does not say so": func(e *registry.Engine) { e.Answers = "" },
	} {
		_, planner := newBase(t, quiet())
		other, err := registry.NewBase(t.Context(), describes{planner, change}, quiet())
		if err != nil {
			t.Fatal(err)
		}
		planner.took()
		r := registry.New(other, registry.RegistryOptions{})
		r.Recall(k)
		if err := r.Reload(t.Context(), 1, rows); err != nil {
			t.Fatal(err)
		}
		if got, not := planner.took(), "parse 0/0 bind 0/0 stubs 0 settle 0"; got == not {
			t.Errorf("%s: it was not asked", what)
		}
		for key := range answersOf(r.Current()).answers {
			if k.answers[key] != "" {
				t.Fatalf("%s: a key of the first one's, %x", what, sha256.Sum256(key[:]))
			}
		}
	}
}

// describes is a planner that says something else of itself.
type describes struct {
	registry.Planner
	change func(*registry.Engine)
}

func (d describes) Describe(ctx context.Context) (*registry.Engine, error) {
	e, err := d.Planner.Describe(ctx)
	if err == nil {
		d.change(e)
	}
	return e, err
}
