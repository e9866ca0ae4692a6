package registry

import (
	"context"

	"github.com/viewkeeper/viewkeeper"
)

// Purpose is what a factory is built for.
type Purpose int

// The purposes.
const (
	// LiveSnapshot: the factory is to be served. Each row that is skipped is
	// logged and counted (BaseOptions.Log and LoadFailure).
	LiveSnapshot Purpose = iota
	// Probe: somebody wants to know what would build. Failures are only returned.
	Probe
)

// BuildFactory compiles rows over the base. Rows come in any order; they are
// built in dependency order; a later row of one name (by version) wins; rows that
// are drops count as absent. A row that fails to parse, to build or to validate
// is skipped with its stage and reason (Factory.Failures) and is never fatal. The
// factory's version is the highest of the rows'.
//
// The error is the planner's own trouble or the context's: then there is no factory.
func BuildFactory(ctx context.Context, base *Base, rows []viewkeeper.Row, purpose Purpose) (*Factory, error) {
	panic("todo")
}
