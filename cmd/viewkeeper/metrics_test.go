package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// metricsFile lists the metrics of a process that has both roles, with their labels. The
// alerting rules are held to it.
var metricsFile = filepath.Join("..", "..", "docs", "alerts", "metrics.txt")

// scriptMetrics compares the metrics of a process with the list: metrics URL. With
// -update it writes the list.
func scriptMetrics(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: metrics URL")
	}
	resp, err := http.Get(args[0] + "/metrics")
	ts.Check(err)
	defer resp.Body.Close()
	got := metricsList(resp.Body)
	if *update {
		ts.Check(os.WriteFile(metricsFile, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(metricsFile)
	ts.Check(err)
	if got != string(want) {
		ts.Fatalf("%s is not what a process has; go test ./cmd/viewkeeper -run TestScripts/metrics -update writes it. It has\n%s", metricsFile, got)
	}
}

// metricsList gives a line for each metric of ours: its name, and each label, with the
// values of those that have few.
func metricsList(text io.Reader) string {
	var (
		series = regexp.MustCompile(`^((?:viewkeeper|view)_[a-z_]+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? `)
		plain  = regexp.MustCompile(`^((?:viewkeeper|view)_[a-z_]+)(?:\{(.*)\})? `)
		label  = regexp.MustCompile(`([a-z]+)="([^"]*)"`)
		found  = map[string]map[string]map[string]bool{}
		shape  = map[string]string{}
	)
	for scan := bufio.NewScanner(text); scan.Scan(); {
		if name, kind, ok := strings.Cut(strings.TrimPrefix(scan.Text(), "# TYPE "), " "); ok && strings.HasPrefix(scan.Text(), "# TYPE ") {
			shape[name] = kind
			continue
		}
		m := series.FindStringSubmatch(scan.Text())
		if m == nil {
			continue
		}
		if shape[m[1]] != "histogram" {
			m = plain.FindStringSubmatch(scan.Text())
		}
		if found[m[1]] == nil {
			found[m[1]] = map[string]map[string]bool{}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if l[1] == "le" {
				continue
			}
			if found[m[1]][l[1]] == nil {
				found[m[1]][l[1]] = map[string]bool{}
			}
			found[m[1]][l[1]][l[2]] = true
		}
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprint(&out, name)
		for _, l := range slices.Sorted(maps.Keys(found[name])) {
			fmt.Fprint(&out, " ", l)
			if slices.Contains([]string{"why", "engine", "state", "of"}, l) {
				fmt.Fprint(&out, "=", strings.Join(slices.Sorted(maps.Keys(found[name][l])), "|"))
			}
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}
