package engine

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// judged is a catalog with Large(n) loaded, and what to submit to it.
type judged struct {
	catalog *registry.Catalog
	texts   []string
	offset  int64
	child   *Planner // nil when the planner is in this process
}

// loadJudged loads Large(n) over a planner.
func loadJudged(b *testing.B, planner registry.Planner, n int) *judged {
	_, texts := registrytest.Large(n)
	base, err := registry.NewBase(b.Context(), planner, registry.BaseOptions{})
	if err != nil {
		b.Fatal(err)
	}
	rows := make([]viewkeeper.Row, len(texts))
	for i, text := range texts {
		stmt, err := ddl.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		c := stmt.(*viewkeeper.Create)
		rows[i] = viewkeeper.Row{Name: c.Name, Version: viewkeeper.Version(i + 1), Definition: &viewkeeper.Definition{Name: c.Name, Kind: c.Kind, SQL: c.SQL, ID: viewkeeper.Version(i + 1)}}
	}
	catalog, err := registry.LoadCatalog(b.Context(), base, rows, registry.CatalogOptions{VersionBase: viewkeeper.Version(n), Owner: "bench", Epoch: 1})
	if err != nil {
		b.Fatal(err)
	}
	if broken := catalog.Snapshot().Broken(); broken > 0 {
		b.Fatalf("%d definitions are broken: %v", broken, catalog.Snapshot().Failures()[0])
	}
	return &judged{catalog: catalog, texts: texts}
}

func (j *judged) accept(b *testing.B, text string) {
	j.offset++
	text = strings.Replace(text, "CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
	out, err := j.catalog.Judge(b.Context(), viewkeeper.Submission{Key: fmt.Sprint("k", j.offset), SQL: text, ID: fmt.Sprint("b:", j.offset), Offset: j.offset, At: time.Unix(0, 0)})
	if err != nil {
		b.Fatal(err)
	}
	if out.Decision.Verdict != viewkeeper.Accepted {
		b.Fatalf("%s: %+v", text, out.Decision)
	}
}

// replacement gives one of the definitions another text, which binds as the old one.
func (j *judged) replacement(i int) string {
	text := j.texts[1+i%(len(j.texts)-1)]
	name, body, _ := strings.Cut(strings.TrimPrefix(text, "CREATE VIEW "), " AS\n")
	return fmt.Sprintf("CREATE VIEW %s AS\nSELECT * FROM (%s) AS q%d", name, body, i)
}

// cpu begins to count the time that both processes spend, and gives what reports it.
func (j *judged) cpu(b *testing.B) func() {
	began := j.spent(b)
	return func() { b.ReportMetric(float64(j.spent(b)-began)/float64(b.N)/1e6, "cpu-ms/op") }
}

func (j *judged) spent(b *testing.B) time.Duration {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	spent := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	if j.child != nil {
		spent += childTime(b, j.child.supervisor.current.pid())
	}
	return spent
}

// childTime is what the kernel says that a process has spent, in steps of 10 ms.
func childTime(b *testing.B, pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // no such thing on this system
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// BenchmarkJudge judges one change at a time, in the child and in this process (to
// profile both sides at once), at two sizes of catalog.
func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		sql, _ := registrytest.Large(n)
		for _, where := range []string{"child", "here"} {
			b.Run(fmt.Sprintf("%d/%s", n, where), func(b *testing.B) {
				var planner registry.Planner
				var err error
				if where == "child" {
					planner, err = StartPlanner(context.Background(), Config{Options: duckdb.Options{BaseSQL: sql, Threads: 1}})
				} else {
					planner, err = duckdb.Open(context.Background(), duckdb.Options{BaseSQL: sql, Threads: 1})
				}
				if err != nil {
					b.Fatal(err)
				}
				defer planner.Close()
				began := time.Now()
				j := loadJudged(b, planner, n)
				j.child, _ = planner.(*Planner)
				b.Logf("loaded in %s", time.Since(began))
				// create is P5's statement: definitions are replaced in turn by texts of the same shape.
				b.Run("replace", func(b *testing.B) {
					i := 0
					defer j.cpu(b)()
					for b.Loop() {
						i++
						j.accept(b, j.replacement(i))
					}
				})
				b.Run("leaf", func(b *testing.B) {
					i := 0
					defer j.cpu(b)()
					for b.Loop() {
						i++
						j.accept(b, fmt.Sprintf("CREATE OR REPLACE VIEW large.leaf AS SELECT id, region, amount + %d AS amount FROM large.root WHERE n > %d", i, i))
					}
				})
				root := j.texts[0]
				b.Run("kept", func(b *testing.B) {
					i := 0
					defer j.cpu(b)()
					for b.Loop() {
						i++
						j.accept(b, strings.Replace(root, "amount > 0", fmt.Sprint("amount > ", i), 1))
					}
				})
				b.Run("changed", func(b *testing.B) {
					i := 0
					defer j.cpu(b)()
					for b.Loop() {
						i++
						j.accept(b, strings.Replace(root, "1 AS extra", []string{"1 AS extra", "'x' AS extra"}[i%2], 1))
					}
				})
			})
		}
	}
}
