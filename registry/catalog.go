package registry

import (
	"context"

	"github.com/viewkeeper/viewkeeper"
)

// Catalog is the owner's catalog: all accepted rows, and the law over them. It
// is for one caller at a time.
type Catalog struct {
	base    *Base
	options CatalogOptions
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
	panic("todo")
}

// Judge decides a submission, and when it is accepted makes it part of the
// catalog. It is total: whatever a user submits gets a decision. The error is the
// engine's own trouble (not that of the statement) or the context's; then nothing
// was decided, and the catalog is as it was.
func (c *Catalog) Judge(ctx context.Context, s viewkeeper.Submission) (*Outcome, error) {
	panic("todo")
}

// Check says what Judge would, and changes nothing.
func (c *Catalog) Check(ctx context.Context, s viewkeeper.Submission) (*Outcome, error) {
	panic("todo")
}

// Snapshot is the catalog as a factory, at the version of the last accepted
// statement. It does not change when the catalog goes on.
func (c *Catalog) Snapshot() *Factory { panic("todo") }
