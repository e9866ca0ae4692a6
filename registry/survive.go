package registry

import (
	"context"

	"github.com/viewkeeper/viewkeeper"
)

// Survival is what CheckDependentsSurvive found.
type Survival struct {
	// Broken lists what built before and would not build afterwards, root causes
	// before the collateral that fails only because of them. A definition that
	// was already broken is never here.
	Broken []viewkeeper.Broken
	// Repaired lists what was broken before and would build afterwards.
	Repaired []viewkeeper.Name
	// Changed lists the definitions in both whose output columns would differ.
	Changed []viewkeeper.Change
}

// OK reports whether everything that built before still would.
func (s *Survival) OK() bool { return len(s.Broken) == 0 }

// CheckDependentsSurvive builds the rows pre and then, planning only what differs,
// the rows post with the real planner, and reports who would not survive the
// change. A definition that post no longer holds is not a victim; its readers
// may be. The error is the planner's own trouble or the context's.
func CheckDependentsSurvive(ctx context.Context, base *Base, pre, post []viewkeeper.Row) (*Survival, error) {
	panic("todo")
}
