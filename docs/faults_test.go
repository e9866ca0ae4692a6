package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper/internal/reasons"
)

// metricNames are the metrics of a process with both roles, as a test of the binary
// finds them.
func metricNames(t *testing.T) (names []string) {
	t.Helper()
	for line := range strings.Lines(read(t, "alerts/metrics.txt")) {
		names = append(names, strings.Fields(line)[0])
	}
	if len(names) < 40 {
		t.Fatalf("only %d metrics", len(names))
	}
	return names
}

// cells gives the rows of the first table behind a heading.
func cells(t *testing.T, page, heading string, columns int) (rows [][]string) {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no %q", heading)
	}
	inside := false
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if inside {
				break
			}
			continue
		}
		inside = true
		row := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if len(row) != columns {
			t.Errorf("%s: %d cells, want %d: %s", heading, len(row), columns, line)
			continue
		}
		rows = append(rows, row)
	}
	if len(rows) < 3 {
		t.Fatalf("%s has no table", heading)
	}
	return rows[2:]
}

// TestFaults: each fault is seen by people. Its metric is one that a process has, its log
// line has the level that the log gives it, there is something to do about it, and an
// alert, or a word why there is none.
func TestFaults(t *testing.T) {
	page := read(t, operations)
	rules := read(t, "alerts/viewkeeper.rules.yml")
	metrics := metricNames(t)
	quoted := regexp.MustCompile("`([A-Za-z_]+)`")
	var alerts []string
	check := func(fault, todo, metric, log, alert string) {
		t.Helper()
		if todo == "" || log == "" {
			t.Errorf("%s: what to do is %q, its log line %q", fault, todo, log)
		}
		named := quoted.FindAllStringSubmatch(metric, -1)
		if named == nil && !strings.HasPrefix(metric, "none: ") {
			t.Errorf("%s has no metric", fault)
		}
		for _, m := range named {
			if !slices.Contains(metrics, m[1]) {
				t.Errorf("%s: a process has no metric %s", fault, m[1])
			}
		}
		named = quoted.FindAllStringSubmatch(alert, -1)
		if named == nil && !strings.HasPrefix(alert, "none: ") {
			t.Errorf("%s has no alert, and no word why", fault)
		}
		for _, m := range named {
			alerts = append(alerts, m[1])
			if !strings.Contains(rules, "\n      - alert: "+m[1]+"\n") {
				t.Errorf("%s: there is no alert %s", fault, m[1])
			}
		}
	}
	for _, row := range cells(t, page, "### Reasons", 6) {
		code := strings.Trim(row[0], "`")
		check(code, row[2], row[3], row[4], row[5])
		if level, _, _ := strings.Cut(row[4], " "); level != reasons.Level(code).String() {
			t.Errorf("%s is logged as %s, and the page says %s", code, reasons.Level(code), row[4])
		}
	}
	for _, row := range cells(t, page, "### Faults without a reason", 5) {
		check(row[0], row[1], row[2], row[3], row[4])
	}
	// And the other way round: an alert that comes has its place on the page.
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(rules, -1) {
		if !slices.Contains(alerts, m[1]) && !strings.Contains(section(t, page, "## Readiness"), "`"+m[1]+"`") {
			t.Errorf("the alert %s is not on the page", m[1])
		}
	}
}

// TestEveryMetricIsThere: the page has the metrics that a process has, and no other. The
// one that counts by name has no series before something breaks.
func TestEveryMetricIsThere(t *testing.T) {
	page := section(t, read(t, operations), "## Metrics")
	var named []string
	for _, m := range regexp.MustCompile("`((?:viewkeeper|view)_[a-z_]+)`").FindAllStringSubmatch(page, -1) {
		if m[1] != "view_definition_load_failure" && !slices.Contains(named, m[1]) {
			named = append(named, m[1])
		}
	}
	compare(t, "metric", named, metricNames(t))
}
