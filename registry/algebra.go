package registry

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// algebra is the last of point 5: what a materialized definition merged can be
// merged again, with the same result. Only the definitions that the statement
// gives are tried, and only when the planner is a [Merger]; where that does not
// know, there is nothing to say.
func (j *judgment) algebra() (*viewkeeper.Error, error) {
	if _, ok := j.base.planner.(Merger); !ok {
		return nil, nil
	}
	var merges []Merge
	var writes []*write
	for _, n := range j.order {
		w, e := j.writes[n], j.trial.after.get(n)
		if w.create == nil || e == nil || !e.ok() || !e.materialized() {
			continue
		}
		if m, ok := e.merge(); ok {
			merges, writes = append(merges, m), append(writes, w)
		}
	}
	if len(merges) == 0 {
		return nil, nil
	}
	answers, err := j.trial.mergeTwice(merges)
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		create := writes[i].create
		at := optionPlace(create, roleMerge.option())
		switch {
		case a.Err != nil:
			return viewkeeper.ErrorAt(at, a.Err.Code, "%s of %s: %s", roleMerge.option(), create.Name, a.Err.Message), nil
		case a.Counter != nil:
			return viewkeeper.ErrorAt(at, viewkeeper.CodeMergeAlgebra, "%s: %s", create.Name, a.Counter.explain(merges[i].Columns)), nil
		}
	}
	return nil, nil
}

// merge gives the entry's merge query as the planner is to run it; false when it
// reads more than {source}, which here would be empty or another node's data.
func (e *entry) merge() (Merge, bool) {
	s := e.source
	for p := range s.parts {
		if s.parts[p].role != roleMerge {
			continue
		}
		for i := range s.refs {
			if s.refs[i].part == p {
				return Merge{}, false
			}
		}
		text, _ := s.qualify(p, e.refs)
		return Merge{Query: s.query(s.parts[p], text), Source: sourceStub(e.name()), Columns: e.planned.extract}, len(s.parts[p].parsed.Files) == 0
	}
	return Merge{}, false
}

// mergeBatch is the most merges of one call. A planner may take some seconds for one
// that is hard, and has a deadline for the call.
const mergeBatch = 3

// mergeTwice asks the planner, with the same care as bind.
func (t *session) mergeTwice(merges []Merge) ([]Algebra, error) {
	return careful(t, merges, mergeBatch,
		func(ms []Merge) ([]Algebra, error) {
			if err := t.ready(); err != nil {
				return nil, noLoss{err}
			}
			return t.base.planner.(Merger).MergeTwice(t.ctx, ms)
		},
		func(e *PlanError) Algebra {
			e.Message = strings.Replace(e.Message, "planning it", "running it over a few made-up rows", 1)
			return Algebra{Err: e}
		})
}

// explain says what is wrong, by example, and what would be right.
func (c *Counterexample) explain(columns []viewkeeper.Column) string {
	once, twice := rowText(columns, c.Once, c.Changed), rowText(columns, c.Twice, c.Changed)
	example := ""
	switch {
	case c.Twice == nil:
		example = fmt.Sprintf("of made-up rows it makes (%s), and of that row, merged again, nothing", once)
	case c.Once == nil:
		example = fmt.Sprintf("what it makes of made-up rows gains the row (%s) when it is merged again", twice)
	default:
		example = fmt.Sprintf("of made-up rows it makes (%s), and of that row, merged again, (%s)", once, twice)
	}
	return "merge_partitions_query can't merge what it merged: " + example + "; partitions are merged more than once, so " + c.wayOut(columns)
}

// wayOut names the usual mistake where it can be that: a number that changes.
func (c *Counterexample) wayOut(columns []viewkeeper.Column) string {
	for _, i := range c.Changed {
		if _, err := strconv.ParseFloat(c.Once[i], 64); err == nil {
			name := viewkeeper.Name{Schema: viewkeeper.DefaultSchema, View: columns[i].Name}
			return fmt.Sprintf("combine what each column holds already: over a count say sum(%s), not count(*)", plainName(name.String()))
		}
	}
	return "give back as it is what was merged before"
}

// rowText shows a row. Of a wide one only the columns of interest, if it has any.
func rowText(columns []viewkeeper.Column, cells []string, interest []int) string {
	const most = 6
	show := interest
	if len(columns) <= most || len(show) == 0 {
		show = nil
		for i := range columns {
			show = append(show, i)
		}
	}
	if cells == nil {
		return ""
	}
	var parts []string
	for n, i := range show {
		if n == most {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, columns[i].Name+" "+cells[i])
	}
	return strings.Join(parts, ", ")
}
