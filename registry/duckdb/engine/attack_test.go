package engine

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/viewkeeper/viewkeeper/registry"
)

var attackTrace = flag.Bool("trace-attacks", false, "print each attack with its times")

// TestAttacks runs testdata/attacks against an owner and a node with real engines,
// while somebody else asks both all the time. Rewrite what is expected with
//
//	go test ./registry/duckdb/engine -run TestAttacks -rewrite
//
// The commands:
//
//	attack     the text as the body of CREATE VIEW attack AS, and as a query
//	statement  the text as it is submitted to the owner
//	query      the text as a query alone
//
// Each says what came of it: how many rows, the code and the words of the refusal, or
// that it was stopped by the limit of time or memory; with "either" no difference is
// made between what was stopped and what was not. What a statement made is built by
// the node, and dropped again; what a statement by itself made is also read.
//
// Between « and » stands a template that writes what nobody wants to read: repeat and
// list, see expandAttack.
func TestAttacks(t *testing.T) {
	w := newAttackWorld(t)
	stop := make(chan struct{})
	probed := make(chan *prober)
	go func() { probed <- w.probe(stop, 20*time.Millisecond) }()

	attacks := 0
	took := map[string]time.Duration{}
	began := time.Now()
	datadriven.Walk(t, "testdata/attacks", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text, err := expandAttack(strings.TrimSuffix(d.Input, "\n"))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			attacks++
			began := time.Now()
			out := w.attack(t, d, text)
			took[d.Pos] = time.Since(began)
			if *attackTrace {
				t.Logf("%s took %s: %s", d.Pos, took[d.Pos].Round(time.Millisecond), out)
			}
			return out
		})
	})
	close(stop)
	p := <-probed

	t.Logf("%d attacks in %s", attacks, time.Since(began).Round(time.Second))
	if attacks < 220 {
		t.Errorf("the list has %d attacks", attacks)
	}
	slowest := slices.SortedFunc(func(yield func(string) bool) {
		for pos := range took {
			if !yield(pos) {
				return
			}
		}
	}, func(a, b string) int { return int(took[b] - took[a]) })
	for _, pos := range slowest[:min(5, len(slowest))] {
		t.Logf("the slowest: %s in %s", pos, took[pos].Round(time.Millisecond))
	}
	if worst := took[slowest[0]]; worst > attackBound {
		t.Errorf("%s took %s", slowest[0], worst)
	}
	for _, what := range []string{"statement", "query"} {
		t.Logf("somebody else's %s: %d, median %s, 99 of 100 in %s, longest %s", what, len(p.total[what]),
			p.quantile(what, 0.5).Round(time.Microsecond), p.quantile(what, 0.99).Round(time.Millisecond), p.longest[what].Round(time.Millisecond))
		if p.longest[what] > attackBound {
			t.Errorf("somebody else's %s took %s", what, p.longest[what])
		}
		cut := 0
		for _, err := range p.failed[what] {
			if what == "query" && registry.AsLost(err) != nil {
				cut++ // between its first byte and its last
				continue
			}
			t.Errorf("somebody else's %s: %v", what, err)
		}
		if cut*100 > len(p.total[what]) {
			t.Errorf("%d of somebody else's %d answers were cut", cut, len(p.total[what]))
		}
	}
	w.checkMemory(t)
}

// checkMemory ends the engines and looks at what they took.
func (w *attackWorld) checkMemory(t *testing.T) {
	t.Helper()
	for _, c := range []interface{ Close() error }{w.owner, w.node, w.serving} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	w.peaks.Lock()
	defer w.peaks.Unlock()
	for r, peak := range w.peak {
		t.Logf("%d engines of %ss, the largest %s", w.lost[r], r, bytesText(peak))
		if peak > attackResident+attackOvershoot {
			t.Errorf("a %s's engine took %s; its limit is %s", r, bytesText(peak), bytesText(attackResident))
		}
	}
}

// attack runs one and says what came of it.
//
// A machine under load stops what is fine in the time that the list gives: what was
// stopped and was expected not to be is asked once more with all the time there is.
func (w *attackWorld) attack(t *testing.T, d *datadriven.TestData, text string) string {
	// What is asked next is not to pay for the engines that the last attack cost.
	_, err := w.query("SELECT 1", attackBound)
	if registry.AsLost(err) != nil { // cut between its first byte and its last, by an engine that the last one was still at
		_, err = w.query("SELECT 1", attackBound)
	}
	if err != nil {
		t.Errorf("%s: before it: %v", d.Pos, err)
	}
	run := func(f func(string, time.Duration) (string, error), expected, text string) string {
		out, err := f(text, 0)
		if err == nil && out != expected && expected != "" && !strings.Contains(expected, stopped) && wasStopped(out) && !d.HasArg("either") {
			out, err = f(text, attackPatience)
		}
		switch {
		case err != nil:
			t.Errorf("%s: %v", d.Pos, err)
			return "!! " + err.Error()
		case expected == stopped && !d.Rewrite:
			return stopped // or refused, or done, just before its limit: then the machine was faster
		case d.HasArg("either") && (wasStopped(out) || strings.HasPrefix(out, "accepted") || strings.HasSuffix(out, " rows")):
			return within
		}
		return out
	}
	expected := strings.TrimSuffix(d.Expected, "\n")
	switch d.Cmd {
	case "statement":
		return run(w.statementOutcome, expected, text) + "\n"
	case "query":
		return run(w.queryOutcome, expected, text) + "\n"
	case "attack":
		both, same := strings.CutPrefix(expected, "both: ")
		definition, query := both, both
		if !same {
			definition, query, _ = strings.Cut(strings.TrimPrefix(expected, "definition: "), "\nquery: ")
		}
		asked := make(chan string, 1)
		go func() { asked <- run(w.queryOutcome, query, text) }()
		definition, query = run(w.statementOutcome, definition, "CREATE VIEW attack AS "+text), <-asked
		if definition == query {
			return "both: " + definition + "\n"
		}
		return "definition: " + definition + "\nquery: " + query + "\n"
	}
	d.Fatalf(t, "no command %s", d.Cmd)
	return ""
}

// within is the outcome of an attack that a fast machine answers and a slow one stops.
const within = "within the limits"

// wasStopped reports whether a limit of time or memory had a part in an outcome.
func wasStopped(outcome string) bool {
	return strings.Contains(outcome, stopped) || strings.Contains(outcome, "ENGINE_TIMEOUT") || strings.Contains(outcome, "ENGINE_KILLED")
}

// expandAttack writes out the templates of a text:
//
//	«repeat 200 "("»                  the text so many times
//	«list 3 ", " "x# AS (FROM x_)"»   numbered and joined: # is 1, 2, 3 and _# the number before
//	«"\x00"»                          what can't be written in a script
func expandAttack(text string) (string, error) {
	tmpl, err := template.New("attack").Delims("«", "»").Funcs(template.FuncMap{
		"repeat": func(n int, s string) string { return strings.Repeat(s, n) },
		"list": func(n int, separator, s string) string {
			items := make([]string, n)
			for i := range items {
				items[i] = strings.ReplaceAll(strings.ReplaceAll(s, "_#", fmt.Sprint(i)), "#", fmt.Sprint(i+1))
			}
			return strings.Join(items, separator)
		},
	}).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = tmpl.Execute(&b, nil)
	return b.String(), err
}
