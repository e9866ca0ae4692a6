// Package docs_test keeps the pages beside it true.
package docs_test

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of codes.md anew")

// TestAnswers judges each example of codes.md, after what had to be there before,
// and compares the answer. The model planner stands for the engine. Write the answers
// anew with
//
//	go test ./docs -rewrite
//
// An example may say in its first line, "-- with ...", what came with the statement.
func TestAnswers(t *testing.T) {
	const page = "codes.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var (
		out     []string
		code    viewkeeper.Code
		before  []string
		example string
		judged  int
	)
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		fence := lines[i]
		if name, ok := strings.CutPrefix(fence, "### "); ok {
			code, before, example = viewkeeper.Code(strings.Trim(name, "`")), nil, ""
		}
		out = append(out, fence)
		if !strings.HasPrefix(fence, "```") {
			continue
		}
		from := i + 1
		for i++; lines[i] != "```"; i++ {
		}
		block := lines[from:i]
		switch fence {
		case "```sql before":
			before = append(before, strings.Join(block, "\n"))
		case "```sql example":
			example = strings.Join(block, "\n")
		case "```text":
			if example == "" {
				break // an answer that the law does not give
			}
			judged++
			got := answer(t, code, before, example)
			if want := strings.Join(block, "\n"); got != want && !*rewrite {
				t.Errorf("%s says\n%s\nand the judge\n%s\nIf the judge is right: go test ./docs -rewrite", code, want, got)
			}
			block = []string{got}
		}
		out = append(append(out, block...), "```")
	}
	if judged < 30 {
		t.Errorf("only %d examples were found", judged)
	}
	if *rewrite {
		if err := os.WriteFile(page, []byte(strings.Join(out, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// answer gives the refusal of example, or the warning with that code.
func answer(t *testing.T, code viewkeeper.Code, before []string, example string) string {
	t.Helper()
	relation := registrytest.Relation
	planner := registrytest.NewModel(
		relation("main.flights", "carrier", "VARCHAR", "flight", "INTEGER", "origin", "VARCHAR", "dest", "VARCHAR",
			"tailnum", "VARCHAR", "dep_delay", "INTEGER", "air_time", "INTEGER", "time_hour", "TIMESTAMP"),
		relation("main.planes", "tailnum", "VARCHAR", "seats", "INTEGER"),
		relation("main.airlines", "carrier", "VARCHAR", "name", "VARCHAR"))
	options := registry.BaseOptions{}
	sub := viewkeeper.Submission{Key: "any", ID: "1", SQL: example, At: time.Unix(1767225600, 0)}
	if first, _, _ := strings.Cut(example, "\n"); strings.HasPrefix(first, "-- with ") {
		words := strings.Fields(first)
		last := strings.Trim(words[len(words)-1], ",:")
		switch {
		case strings.Contains(first, "record key"):
			sub.Key = last
		case strings.Contains(first, "expect_version"):
			n, err := strconv.ParseUint(last, 10, 63)
			if err != nil {
				t.Fatal(err)
			}
			v := viewkeeper.Version(n)
			sub.ExpectVersion = &v
		case strings.Contains(first, "limit"):
			n, err := strconv.Atoi(last)
			if err != nil {
				t.Fatal(err)
			}
			options.Sizes.MaxBody = n
		case strings.Contains(first, "required"):
			options.Policy.Require = []registry.RequiredColumn{{AnyOf: []string{"audience", "process_id"}, Types: []string{"VARCHAR"}}}
		default:
			t.Fatalf("%s: nobody knows what this means", first)
		}
	}
	base, err := registry.NewBase(t.Context(), planner, options)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := registry.LoadCatalog(t.Context(), base, nil, registry.CatalogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	judge := func(s viewkeeper.Submission) viewkeeper.Decision {
		outcome, err := catalog.Judge(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return outcome.Decision
	}
	for _, script := range before {
		for _, piece := range ddl.Split(script) {
			sub.Offset++
			d := judge(viewkeeper.Submission{Key: "any", ID: strconv.FormatInt(sub.Offset+1, 10), SQL: piece.Text, Offset: sub.Offset, At: sub.At})
			if d.Verdict != viewkeeper.Accepted {
				t.Fatalf("before the example of %s: %s: %s", code, d.Code, d.Message)
			}
		}
	}
	sub.Offset++
	d := judge(sub)
	if d.Code == code {
		return string(d.Code) + ": " + d.Message
	}
	for _, w := range d.Warnings {
		if w.Code == code {
			return string(w.Code) + ": " + w.Message
		}
	}
	t.Errorf("the example of %s is %s: %s %s %v", code, d.Verdict, d.Code, d.Message, d.Warnings)
	return ""
}
