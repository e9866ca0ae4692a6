package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// counter counts what a planner is asked.
type counter struct {
	registry.Planner
	parse, bind, parsed, bound, stubs, settle, reset int
	hook                                             func(call string, queries []registry.Query) error
}

func (c *counter) Parse(ctx context.Context, q []registry.Query) ([]registry.Parsed, error) {
	c.parse++
	c.parsed += len(q)
	if c.hook != nil {
		if err := c.hook("parse", q); err != nil {
			return nil, err
		}
	}
	return c.Planner.Parse(ctx, q)
}

func (c *counter) Bind(ctx context.Context, s []registry.Stub, q []registry.Query) ([]registry.Bound, error) {
	c.bind++
	c.bound += len(q)
	c.stubs += len(s)
	if c.hook != nil {
		if err := c.hook("bind", q); err != nil {
			if registry.AsLost(err) != nil {
				c.Planner.Reset(context.WithoutCancel(ctx))
			}
			return nil, err
		}
	}
	return c.Planner.Bind(ctx, s, q)
}

func (c *counter) Settle(ctx context.Context, keep bool) error {
	c.settle++
	return c.Planner.Settle(ctx, keep)
}

func (c *counter) Reset(ctx context.Context) error {
	c.reset++
	return c.Planner.Reset(ctx)
}

// took gives what was asked since the last call, and starts again.
func (c *counter) took() string {
	s := fmt.Sprintf("parse %d/%d bind %d/%d stubs %d settle %d", c.parse, c.parsed, c.bind, c.bound, c.stubs, c.settle)
	*c = counter{Planner: c.Planner, hook: c.hook}
	return s
}

func newBase(t testing.TB, options registry.BaseOptions) (*registry.Base, *counter) {
	t.Helper()
	c := &counter{Planner: registrytest.NewModel(registrytest.BaseRelations()...)}
	base, err := registry.NewBase(t.Context(), c, options)
	if err != nil {
		t.Fatal(err)
	}
	return base, c
}

// statement is a submission as a producer sends it.
func statement(offset int64, sql string) viewkeeper.Submission {
	return viewkeeper.Submission{
		Key: fmt.Sprint("record-", offset), SQL: sql, ID: fmt.Sprint("t:", offset), Offset: offset,
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// TestStories plays testdata/*.txt: what each statement is answered, and what it
// asked of the planner.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		base, planner := newBase(t, registry.BaseOptions{})
		catalog, err := registry.LoadCatalog(t.Context(), base, nil, registry.CatalogOptions{Owner: "node-1", Epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		var offset int64
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "judge":
				planner.took()
				out, err := catalog.Judge(t.Context(), statement(offset, d.Input))
				if err != nil {
					return err.Error()
				}
				offset++
				return show(out) + "  " + planner.took() + "\n"
			case "catalog":
				return listing(catalog.Snapshot())
			case "texts":
				var b strings.Builder
				for _, r := range catalog.Snapshot().Rows() {
					fmt.Fprintf(&b, "%s v%s: %s\n", r.Name, r.Version, r.Definition.SQL)
				}
				return b.String()
			case "lineage":
				name, err := viewkeeper.ParseName(d.CmdArgs[0].Key)
				if err != nil {
					t.Fatal(err)
				}
				l, ok := catalog.Snapshot().Lineage(name, registry.Both, 0)
				if !ok {
					return "no such name\n"
				}
				var b strings.Builder
				for _, e := range l.Edges {
					fmt.Fprintf(&b, "%s %s → %s %s\n", e.From.Kind, e.From.Name, e.To.Kind, e.To.Name)
				}
				return b.String()
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

// show gives a decision in a few lines.
func show(o *registry.Outcome) string {
	var b strings.Builder
	d := o.Decision
	fmt.Fprintf(&b, "%s", d.Verdict)
	if d.Code != "" {
		fmt.Fprintf(&b, " %s", d.Code)
	}
	if d.Position != nil {
		fmt.Fprintf(&b, " at %d:%d", d.Position.Line, d.Position.Column)
	}
	fmt.Fprintf(&b, ": %s\n", d.Message)
	for _, c := range d.Changed {
		fmt.Fprintf(&b, "  %s %s (%s) → (%s)", c.Action, c.Name, columns(c.ColumnsBefore), columns(c.ColumnsAfter))
		if c.RenamedTo != nil {
			fmt.Fprintf(&b, " as %s", c.RenamedTo)
		}
		b.WriteString("\n")
	}
	for _, x := range d.Broken {
		fmt.Fprintf(&b, "  broken %s: %s", x.Name, x.Reason)
		if x.Position != nil {
			fmt.Fprintf(&b, " at %d:%d", x.Position.Line, x.Position.Column)
		}
		if x.RootCause != nil {
			fmt.Fprintf(&b, " because of %s", x.RootCause)
		}
		b.WriteString("\n")
	}
	for _, n := range d.Repaired {
		fmt.Fprintf(&b, "  repaired %s\n", n)
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "  warning %s %s: %s\n", w.Code, w.Name, w.Message)
	}
	return b.String()
}

func columns(cols []viewkeeper.Column) string {
	var out []string
	for _, c := range cols {
		out = append(out, c.Name+" "+c.Type)
	}
	return strings.Join(out, ", ")
}

// listing shows all definitions of a factory.
func listing(f *registry.Factory) string {
	var b strings.Builder
	for d := range f.Definitions() {
		fmt.Fprintf(&b, "%s v%s %s", d.Row.Name, d.Row.Version, d.State())
		if d.OK() {
			fmt.Fprintf(&b, " (%s)", columns(d.Columns))
		} else {
			fmt.Fprintf(&b, " %s %s: %s", d.Failure.Stage, d.Failure.Code, d.Failure.Reason)
			if d.Failure.RootCause != nil {
				fmt.Fprintf(&b, " because of %s", d.Failure.RootCause)
			}
		}
		var reads []string
		for _, r := range d.Reads {
			reads = append(reads, fmt.Sprintf("%s %s", r.Kind, r.Name))
		}
		if len(reads) > 0 {
			fmt.Fprintf(&b, " reads %s", strings.Join(reads, ", "))
		}
		if by := f.ReadBy(d.Row.Name); len(by) > 0 {
			fmt.Fprintf(&b, " read by %s", by)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// rowsOf makes rows of CREATE texts, at versions from 1.
func rowsOf(t testing.TB, texts ...string) []viewkeeper.Row {
	t.Helper()
	var rows []viewkeeper.Row
	for i, text := range texts {
		rows = append(rows, rowOf(t, viewkeeper.Version(i+1), text))
	}
	return rows
}

// newModelBase is a base over a planner of its own.
func newModelBase(t interface{ Fatal(...any) }) *registry.Base {
	base, err := registry.NewBase(context.Background(), registrytest.NewModel(registrytest.BaseRelations()...), quiet())
	if err != nil {
		t.Fatal(err)
	}
	return base
}
