package engine

import (
	"context"

	"github.com/viewkeeper/viewkeeper/registry"
)

type mergeParams struct {
	Merges []registry.Merge `json:"merges"`
}

var _ registry.Merger = (*Planner)(nil)

// MergeTwice is that of [registry.Merger].
func (p *Planner) MergeTwice(ctx context.Context, merges []registry.Merge) ([]registry.Algebra, error) {
	var answers []registry.Algebra
	err := p.call(ctx, methodMerge, mergeParams{merges}, &answers)
	return answers, err
}

// mergeTwice is the child's side. A planner that runs no merge query does not know.
func mergeTwice(ctx context.Context, planner registry.Planner, p mergeParams) ([]registry.Algebra, error) {
	if m, ok := planner.(registry.Merger); ok {
		return m.MergeTwice(ctx, p.Merges)
	}
	answers := make([]registry.Algebra, len(p.Merges))
	for i := range answers {
		answers[i].Unknown = "the planner runs no merge query"
	}
	return answers, nil
}
