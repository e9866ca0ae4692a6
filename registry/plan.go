package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// plan asks the planner about the attempts of one rank: one call for all bodies,
// extract and count queries, and a second one for merge queries, which need the
// extract's columns, if there are any.
func (t *trial) plan(asks []*attempt) error {
	if len(asks) == 0 {
		return nil
	}
	all := asks
	asks = nil
	for _, a := range all {
		s := a.entry.source
		for p := range s.parts {
			text, back := s.qualify(p, a.entry.refs)
			a.texts, a.backs = append(a.texts, text), append(a.backs, back)
		}
		if a.entry.planned = t.recallPlan(a.entry, a.texts); a.entry.planned == nil {
			a.bound = make([]*Bound, len(s.parts))
			asks = append(asks, a)
		}
	}
	if err := t.planParts(asks, func(a *attempt, r role) bool { return r != roleMerge }); err != nil {
		return err
	}
	merges := false
	for _, a := range asks {
		e := a.entry
		if !e.materialized() {
			continue
		}
		if b := a.bound[0]; b.Err == nil {
			merges = true
			t.stub(sourceStub(e.name()), b.Columns)
		}
	}
	if merges {
		err := t.planParts(asks, func(a *attempt, r role) bool { return r == roleMerge && a.bound[0].Err == nil })
		if err != nil {
			return err
		}
	}
	for _, a := range asks {
		a.entry.planned = &planned{}
		a.entry.planned.failure = guard(func() *failure { return a.judge() })
	}
	return nil
}

// planParts sends the parts for which want says so, all in one call.
func (t *trial) planParts(asks []*attempt, want func(*attempt, role) bool) error {
	type place struct {
		a    *attempt
		part int
	}
	var queries []Query
	var places []place
	for _, a := range asks {
		s := a.entry.source
		for p := range s.parts {
			if !want(a, s.parts[p].role) {
				continue
			}
			q := s.query(s.parts[p], a.texts[p])
			q.Parquet = s.parts[p].role == roleExtract
			if q.Text != s.parts[p].text {
				q.Origin = s.parts[p].text
			}
			queries, places = append(queries, q), append(places, place{a, p})
		}
	}
	bound, err := t.bind(queries)
	if err != nil {
		return err
	}
	for i := range bound {
		places[i].a.bound[places[i].part] = &bound[i]
	}
	return nil
}

// judge reads the planner's answers: the columns, or why there are none.
func (a *attempt) judge() *failure {
	e := a.entry
	for p, b := range a.bound {
		if b != nil && b.Err != nil {
			return e.source.planFailure(p, a.backs[p], b.Err, StageBuild)
		}
	}
	if !e.materialized() {
		e.planned.columns = a.bound[0].Columns
		return nil
	}
	extract, count, merge := a.bound[0], a.bound[1], a.bound[2]
	e.planned.extract, e.planned.columns = extract.Columns, merge.Columns
	c := e.source.create
	if f := sameMerge(c, extract, merge); f != nil {
		return f
	}
	if f := countQuery(c, count.Columns); f != nil {
		return f
	}
	if f := timeColumns(c, extract.Columns); f != nil {
		return f
	}
	return sortOrder(c, extract.Columns)
}

// sameMerge checks that a merged partition can be merged again: the merge query
// gives what it was given, also when that comes back from a Parquet file.
func sameMerge(c *viewkeeper.Create, extract, merge *Bound) *failure {
	fail := func(option, format string, args ...any) *failure {
		return failAt(optionPlace(c, option), StageValidate, viewkeeper.CodeMergeSchema, option+" "+fmt.Sprintf(format, args...))
	}
	for i, col := range extract.Columns {
		if i < len(extract.Parquet) && extract.Parquet[i].Type != col.Type {
			stored := extract.Parquet[i].Type
			return fail("extract_query", "gives %s the type %s, which is %s when it is read back from a Parquet file; cast it to a type that stays%s",
				col.Name, col.Type, stored, castHint(col.Type))
		}
	}
	want, got := extract.Columns, merge.Columns
	for i := range min(len(want), len(got)) {
		switch {
		case want[i].Name != got[i].Name:
			return fail("merge_partitions_query", "gives %s as column %d where extract_query gives %s; both must give the same columns in the same order",
				got[i].Name, i+1, want[i].Name)
		case want[i].Type != got[i].Type:
			return fail("merge_partitions_query", "gives %s the type %s where extract_query gives %s; cast it to that", want[i].Name, got[i].Type, want[i].Type)
		}
	}
	switch {
	case len(want) > len(got):
		return fail("merge_partitions_query", "leaves out %s, which extract_query gives; both must give the same columns in the same order", want[len(got)].Name)
	case len(want) < len(got):
		return fail("merge_partitions_query", "gives %s, which extract_query does not; both must give the same columns in the same order", got[len(want)].Name)
	}
	return nil
}

func castHint(typ string) string {
	if typ == "HUGEINT" {
		return ", say ::BIGINT"
	}
	return ""
}

func countQuery(c *viewkeeper.Create, cols []viewkeeper.Column) *failure {
	if len(cols) == 1 && viewkeeper.Fold(cols[0].Name) == "count" && cols[0].Type == "BIGINT" {
		return nil
	}
	return failAt(optionPlace(c, "count_src_query"), StageValidate, viewkeeper.CodeCountQuery,
		fmt.Sprintf("count_src_query must give one column, count BIGINT, and gives %s; say SELECT count(*) AS count", columnList(cols)))
}

func timeColumns(c *viewkeeper.Create, cols []viewkeeper.Column) *failure {
	m := c.Materialized
	options := []struct{ option, column string }{{"min_time_column", m.MinTimeColumn}, {"max_time_column", m.MaxTimeColumn}}
	if _, ok := m.Places["time_column"]; ok {
		options = options[:1]
		options[0].option = "time_column"
	}
	for _, o := range options {
		i := findColumn(cols, o.column)
		if i < 0 {
			return failAt(optionPlace(c, o.option), StageValidate, viewkeeper.CodeTimeColumn,
				fmt.Sprintf("%s is %s, and extract_query gives no such column (it gives %s)", o.option, o.column, columnList(cols)))
		}
		if t := strings.ToUpper(cols[i].Type); t != "DATE" && !strings.HasPrefix(t, "TIMESTAMP") {
			return failAt(optionPlace(c, o.option), StageValidate, viewkeeper.CodeTimeColumn,
				fmt.Sprintf("%s is %s, which has the type %s; it must be a timestamp or a date", o.option, o.column, cols[i].Type))
		}
	}
	return nil
}

func sortOrder(c *viewkeeper.Create, cols []viewkeeper.Column) *failure {
	for _, sc := range c.Materialized.SortOrder {
		if findColumn(cols, sc.Name) < 0 {
			at := sc.Offset
			if at < 0 {
				at = optionPlace(c, "merge_sort_order")
			}
			return failAt(at, StageValidate, viewkeeper.CodeSortOrder,
				fmt.Sprintf("merge_sort_order names %s, and extract_query gives no such column (it gives %s)", sc.Name, columnList(cols)))
		}
	}
	return nil
}

// findColumn finds a column by its folded name, -1 when there is none.
func findColumn(cols []viewkeeper.Column, name string) int {
	return slices.IndexFunc(cols, func(c viewkeeper.Column) bool { return viewkeeper.Fold(c.Name) == viewkeeper.Fold(name) })
}

// sameColumns compares outputs; nil, which is broken, is not an empty list.
func sameColumns(a, b []viewkeeper.Column) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}

// columnList shows columns in a message, at most ten of them.
func columnList(cols []viewkeeper.Column) string {
	if len(cols) == 0 {
		return "nothing"
	}
	var b strings.Builder
	for i, c := range cols {
		if i == 10 {
			fmt.Fprintf(&b, " and %d more", len(cols)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.Name + " " + c.Type)
	}
	return b.String()
}
