package registry

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// Catalog is the owner's catalog: all accepted rows, and the law over them. It
// is for one caller at a time.
type Catalog struct {
	base    *Base
	options CatalogOptions
	current *Factory
}

// CatalogOptions says whose decisions a Catalog makes.
type CatalogOptions struct {
	// VersionBase is added to a submission's offset + 1 to make its version.
	VersionBase viewkeeper.Version
	// Epoch and Owner go into every decision and row.
	Epoch viewkeeper.Epoch
	Owner string
}

// Outcome is what the law says to a submission.
type Outcome struct {
	// Decision is complete, with SQL and Rows.
	Decision viewkeeper.Decision
	// Rows are the rows that the statement changes, drops included, sorted by
	// name; none unless it is accepted.
	Rows []viewkeeper.Row
}

// LoadCatalog builds the catalog from rows accepted before, as BuildFactory does:
// what does not build is broken, and blocks nothing.
func LoadCatalog(ctx context.Context, base *Base, rows []viewkeeper.Row, options CatalogOptions) (*Catalog, error) {
	c := &Catalog{base: base, options: options}
	f, err := build(ctx, base, rows, false)
	if err != nil {
		return nil, err
	}
	c.current = f
	base.flush(ctx, f.graph)
	return c, nil
}

// CatalogAt gives the catalog that a factory was built from, for asking what the
// judge would say to a statement over it ([Catalog.Check]). Nothing is planned
// before it is asked. It shares the factory's base, whose other users it waits for.
func CatalogAt(f *Factory, options CatalogOptions) *Catalog {
	return &Catalog{base: f.base, options: options, current: f}
}

// CatalogOn is CatalogAt over a base of the caller's, which must hold the same as the
// factory's: with a planner of its own a check waits for no build, and no build for a
// check.
func CatalogOn(base *Base, f *Factory, options CatalogOptions) *Catalog {
	return &Catalog{base: base, options: options, current: f}
}

// Judge decides a submission, and when it is accepted makes it part of the
// catalog. It is total: whatever a user submits gets a decision. The error is the
// engine's own trouble (not that of the statement) or the context's; then nothing
// was decided, and the catalog is as it was.
func (c *Catalog) Judge(ctx context.Context, s viewkeeper.Submission) (*Outcome, error) {
	return c.decide(ctx, s, true)
}

// Check says what Judge would, and changes nothing.
func (c *Catalog) Check(ctx context.Context, s viewkeeper.Submission) (*Outcome, error) {
	return c.decide(ctx, s, false)
}

// Retry builds broken definitions again, since what they need from outside the
// catalog may have come. It decides nothing and changes no row.
func (c *Catalog) Retry(ctx context.Context) error {
	retry := c.current.graph.retryable()
	if len(retry) == 0 {
		return nil
	}
	f, _, err := c.current.next(ctx, c.current.version, nil, retry, false)
	if err == nil {
		c.current = f
	}
	return err
}

// Snapshot is the catalog as a factory, at the version of the last accepted
// statement. It does not change when the catalog goes on.
func (c *Catalog) Snapshot() *Factory { return c.current }

// decide runs one submission through the law. A panic on the way is a mistake of
// this program, and still not a reason to stop on the same record at every start:
// the statement is refused with code INTERNAL and all that is known of the panic,
// and nothing that it touched is used again.
func (c *Catalog) decide(ctx context.Context, s viewkeeper.Submission, advance bool) (out *Outcome, err error) {
	j := newJudgment(c, s)
	defer func() {
		if p := recover(); p != nil {
			c.base.distrust()
			j = newJudgment(c, s)
			j.refuse(viewkeeper.Errorf(viewkeeper.CodeInternal,
				"viewkeeper itself failed on this statement, which changed nothing; please report it together with the statement: %v%s", p, panicPlace()))
			out, err = j.outcome(), nil
		}
	}()
	refusal := j.form()
	if refusal == nil {
		refusal = j.preconditions()
	}
	switch {
	case refusal != nil:
		j.refuse(refusal)
	case len(j.writes) == 0:
		j.unchanged()
	default:
		if err := j.try(ctx, advance); err != nil {
			return nil, err
		}
	}
	out = j.outcome()
	if j.next != nil { // last, so that nothing that can fail comes after it
		c.current = j.next
	}
	return out, nil
}

// panicPlace gives the innermost function of this module that a recovered panic
// came from.
func panicPlace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && strings.Contains(f.Function, "viewkeeper"):
			return fmt.Sprintf(" (in %s, %s:%d)", path.Base(f.Function), path.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
