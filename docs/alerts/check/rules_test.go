package check

import (
	"bufio"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const rulesFile = "../viewkeeper.rules.yml"

func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 20 {
		t.Fatalf("only %d rules", len(all))
	}
	return all
}

// Each rule parses, with the templates in its texts, and says how bad it is, what is
// wrong, and where the page is.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules(t) {
		if seen[r.Alert] {
			t.Errorf("%s is there twice", r.Alert)
		}
		seen[r.Alert] = true
		if !strings.HasPrefix(r.Alert, "Viewkeeper") {
			t.Errorf("the name of %s", r.Alert)
		}
		if s := r.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, s) {
			t.Errorf("%s has the severity %q", r.Alert, s)
		}
		for _, a := range []string{"summary", "description", "runbook_url"} {
			if r.Annotations[a] == "" {
				t.Errorf("%s has no %s", r.Alert, a)
			}
		}
		_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "docs/operations.md#")
		page, err := os.ReadFile("../../operations.md")
		if err != nil {
			t.Fatal(err)
		}
		heading := regexp.MustCompile(`(?im)^#+ ` + strings.ReplaceAll(regexp.QuoteMeta(anchor), "-", " ") + `$`)
		if anchor == "" || !heading.Match(page) {
			t.Errorf("%s: the page has no heading for %s", r.Alert, r.Annotations["runbook_url"])
		}
	}
}

// metric is one of ../metrics.txt: its labels, with their values where those are few
// and known.
type metric map[string][]string

// added are the labels that Prometheus adds to what it scrapes.
var added = []string{"instance", "job"}

func metrics(t *testing.T) map[string]metric {
	t.Helper()
	f, err := os.Open("../metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]metric{}
	for scan := bufio.NewScanner(f); scan.Scan(); {
		name, rest, _ := strings.Cut(scan.Text(), " ")
		m := metric{}
		for _, label := range strings.Fields(rest) {
			label, values, enum := strings.Cut(label, "=")
			m[label] = nil
			if enum {
				m[label] = strings.Split(values, "|")
			}
		}
		if _, ok := m["reason"]; ok {
			m["reason"] = reasons(t)
		}
		all[name] = m
	}
	if len(all) < 40 {
		t.Fatalf("only %d metrics", len(all))
	}
	return all
}

// Whatever a rule asks for is there: the metric, its labels, and the values of those that
// have few. A label that a rule groups by is one of a metric in it, or Prometheus' own.
func TestRulesAskForWhatThereIs(t *testing.T) {
	all := metrics(t)
	p := parser.NewParser(parser.Options{})
	for _, r := range rules(t) {
		expr, err := p.ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		var used []metric
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			sel, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			var named []string
			for name := range all {
				if matches(sel.LabelMatchers, labels.MetricName, name) {
					named = append(named, name)
				}
			}
			if len(named) == 0 {
				t.Errorf("%s: there is no metric %s", r.Alert, sel)
			}
			for _, name := range named {
				used = append(used, all[name])
			}
			for _, m := range sel.LabelMatchers {
				if m.Name == labels.MetricName {
					continue
				}
				// One that excludes a value may be of some of the metrics only.
				excludes := m.Type == labels.MatchNotEqual || m.Type == labels.MatchNotRegexp
				known := false
				for _, name := range named {
					if _, has := all[name][m.Name]; has || !excludes {
						knows(t, r.Alert, name, all[name], m)
						known = true
					}
				}
				if !known {
					t.Errorf("%s excludes a %s, which nothing in it has", r.Alert, m.Name)
				}
			}
			return nil
		})
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if agg, ok := node.(*parser.AggregateExpr); ok {
				for _, label := range agg.Grouping {
					if !slices.Contains(added, label) && !slices.ContainsFunc(used, func(m metric) bool { _, ok := m[label]; return ok }) {
						t.Errorf("%s groups by %s, which nothing in it has", r.Alert, label)
					}
				}
			}
			return nil
		})
	}
}

// reasons are the codes in the table of the page, which a test there holds to the code.
func reasons(t *testing.T) (codes []string) {
	t.Helper()
	page, err := os.ReadFile("../../operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllSubmatch(page, -1) {
		codes = append(codes, string(m[1]))
	}
	if len(codes) < 20 {
		t.Fatalf("only %d reasons on the page", len(codes))
	}
	return codes
}

func matches(matchers []*labels.Matcher, label, value string) bool {
	for _, m := range matchers {
		if m.Name == label && !m.Matches(value) {
			return false
		}
	}
	return true
}

// knows reports a label that a metric does not have, and a value that none of the label's
// is; of alternatives each has to be one.
func knows(t *testing.T, alert, name string, has metric, m *labels.Matcher) {
	t.Helper()
	values, ok := has[m.Name]
	if !ok && !slices.Contains(added, m.Name) {
		t.Errorf("%s: %s has no label %s", alert, name, m.Name)
	}
	if values == nil {
		return
	}
	for _, want := range strings.Split(m.Value, "|") {
		if !slices.Contains(values, want) {
			t.Errorf("%s: %s of %s is never %s", alert, m.Name, name, want)
		}
	}
}
