package registrytest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// judgeOver gives a judge over the real engine with that base.
func judgeOver(t *testing.T, baseSQL string, lake ...string) func(sql string) viewkeeper.Decision {
	t.Helper()
	planner, err := openEngine(t, baseSQL, lake...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { planner.Close() })
	base, err := registry.NewBase(t.Context(), planner, registry.BaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := registry.LoadCatalog(t.Context(), base, nil, registry.CatalogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	offset := int64(0)
	return func(sql string) viewkeeper.Decision {
		offset++
		out, err := catalog.Judge(t.Context(), viewkeeper.Submission{Key: "any", ID: "any", SQL: sql, Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		return out.Decision
	}
}

// TestSample: the definitions that come with the sample lake are accepted.
func TestSample(t *testing.T) {
	const root = "../../examples/nycflights13"
	baseSQL, err := os.ReadFile(filepath.Join(root, "base.sql"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "definitions/*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	judge := judgeOver(t, string(baseSQL), filepath.Join(root, "lake"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range ddl.Split(string(text)) {
			if d := judge(piece.Text); d.Verdict != viewkeeper.Accepted {
				t.Errorf("%s: %s: %s", file, d.Code, d.Message)
			}
		}
	}
}

// TestMergeAlgebraPage: the example of codes.md that only an engine which runs merge
// queries can answer, and the way out that the page gives.
func TestMergeAlgebraPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/codes.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)### `MERGE_ALGEBRA`.*?```sql\n(.*?)\n```.*?```text\n(.*?)\n```").FindStringSubmatch(string(page))
	if m == nil {
		t.Fatal("codes.md has no example of MERGE_ALGEBRA")
	}
	judge := judgeOver(t, "CREATE TABLE flights(carrier VARCHAR, time_hour TIMESTAMP)")
	d := judge(m[1])
	if got := string(d.Code) + ": " + d.Message; got != m[2] {
		t.Errorf("the page says\n%s\nand the judge\n%s", m[2], got)
	}
	right := strings.Replace(m[1], "count(*) AS n FROM {source}", "sum(n)::BIGINT AS n FROM {source}", 1)
	if d := judge(right); right == m[1] || d.Verdict != viewkeeper.Accepted {
		t.Errorf("the way out: %s: %s", d.Code, d.Message)
	}
}
