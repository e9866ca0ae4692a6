// Package torture runs many clients against a fleet on three brokers under a nemesis,
// and checks the history of what they saw (package history says for what).
//
//	make torture MINUTES=20            a long run, from a random seed, which is printed
//	make torture MINUTES=20 SEED=42    the choices of workload and nemesis again
//
// A seed repeats choices, not time: which statement meets which fault differs from run
// to run. So a run that fails keeps its history, which can be checked again.
package torture

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper/e2e/torture/history"
)

var (
	seedFlag = flag.Uint64("seed", 0, "repeats the choices of a run; 0 draws one")
	minutes  = flag.Float64("minutes", 0.4, "how long clients and nemesis are at work")
)

func TestTorture(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(rand.Uint32()) + 1
	}
	again := fmt.Sprintf("make torture MINUTES=%v SEED=%d", *minutes, seed)
	t.Log(again)
	r := torture(t, seed, time.Duration(*minutes*float64(time.Minute)))
	began := time.Now()
	findings := r.h.Check(2 * time.Minute)
	t.Logf("checked in %v", time.Since(began).Round(time.Millisecond))
	report(t, r)
	for _, f := range findings {
		t.Error(f)
	}
	if t.Failed() {
		keep(t, &r.h, findings)
		t.Logf("the same choices again: %s", again)
	}
}

// report tells the numbers of a run.
func report(t *testing.T, r *run) {
	faults, outcomes, doors, verdicts := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	tries, again := 0, 0
	for _, f := range r.h.Faults {
		faults[f.Kind]++
	}
	for _, op := range r.h.Ops {
		outcomes[op.Outcome]++
		doors[op.Door]++
		tries += op.Tries
		if op.Again {
			again++
		}
	}
	seen := map[int64]bool{}
	for _, d := range r.h.Topic {
		if !seen[d.Version] {
			verdicts[strings.TrimSpace(d.Verdict+" "+d.Code)]++
		}
		seen[d.Version] = true
	}
	repeats := len(r.h.Log) - len(seen)
	t.Logf("faults: %d%s", len(r.h.Faults), counts(faults))
	t.Logf("statements: %d, sent %d times, %d with an id used before%s%s", len(r.h.Ops), tries, again, counts(doors), counts(outcomes))
	t.Logf("records: %d, of them repetitions of an id: %d; decision records: %d for %d decisions%s", len(r.h.Log), repeats, len(r.h.Topic), len(seen), counts(verdicts))
	t.Logf("reads: %d answered, statuses: %d; without an answer%s", len(r.h.Queries), len(r.h.Samples), counts(r.misses))
	if len(r.converge) > 0 {
		t.Logf("converged %d times, after at most %v", len(r.converge), slices.Max(r.converge).Round(time.Millisecond))
	}
}

func counts(m map[string]int) string {
	out := ""
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out += fmt.Sprintf("; %s: %d", k, m[k])
	}
	return out
}

// keep writes the history of a failed run, and a page for each name that no order explains.
func keep(t *testing.T, h *history.History, findings []history.Finding) {
	dir, err := os.MkdirTemp("", "viewkeeper-torture-")
	if err != nil {
		t.Error(err)
		return
	}
	path := filepath.Join(dir, "history.jsonl")
	write := func(path string, what func(*os.File) error) {
		f, err := os.Create(path)
		if err == nil {
			err = what(f)
			if cerr := f.Close(); err == nil {
				err = cerr
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	write(path, func(f *os.File) error { return h.Write(f) })
	for _, name := range slices.Concat(layers[:]...) {
		for _, f := range findings {
			if f.Rule == "linear" && strings.Contains(f.Detail, " about "+name+" ") {
				write(filepath.Join(dir, name+".html"), func(f *os.File) error { return h.Visualize(name, time.Minute, f) })
			}
		}
	}
	t.Logf("the history is kept: go test ./e2e/torture/history -run TestKept -v -history %s", path)
}
