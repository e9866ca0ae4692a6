package ddl

import (
	"slices"
	"strconv"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// The names of the options of a materialized definition, sorted.
const (
	optCountSrc    = "count_src_query"
	optExtract     = "extract_query"
	optMaxTime     = "max_time_column"
	optMergeDelta  = "merge_partition_delta"
	optMerge       = "merge_partitions_query"
	optSortOrder   = "merge_sort_order"
	optMinTime     = "min_time_column"
	optSourceDelta = "source_partition_delta"
	optTime        = "time_column"
	optUpdateGroup = "update_group"
)

func optionNames() []string {
	return []string{optCountSrc, optExtract, optMaxTime, optMergeDelta, optMerge, optSortOrder, optMinTime, optSourceDelta, optTime, optUpdateGroup}
}

// option is one name = value of the list.
type option struct {
	name  string
	value viewkeeper.Fragment // the literal's content, or the number
	toks  []Token             // the value's tokens
	at    int                 // where the value starts
}

// optionList is the options as given, each once, by name.
type optionList map[string]*option

// materialized reads WITH (...) [ON REPLACE KEEP | REBUILD].
func (p *parser) materialized(c *viewkeeper.Create) *viewkeeper.Error {
	if p.peek(0).Is("as") || p.peek(0).isOp("(") {
		return p.errorf(viewkeeper.CodeSyntax,
			"%s: a materialized view is given by options, WITH (extract_query = $$ ... $$, ...); for one query write CREATE VIEW", c.Name)
	}
	if err := p.expect("with"); err != nil {
		return err
	}
	opts, err := p.options(c.Name)
	if err != nil {
		return err
	}
	m := &viewkeeper.Materialized{OnReplace: viewkeeper.OnReplaceKeep, Places: map[string]int{}}
	said := false
	if p.accept("on") {
		said = true
		if err := p.expect("replace"); err != nil {
			return err
		}
		switch {
		case p.accept("keep"):
		case p.accept("rebuild"):
			m.OnReplace = viewkeeper.OnReplaceRebuild
		default:
			return p.unexpected("KEEP or REBUILD")
		}
	}
	if p.i < len(p.stmt.toks) {
		return p.unexpected("the end of the statement or ON REPLACE KEEP | REBUILD")
	}
	for name, o := range opts {
		m.Places[name] = o.at
	}
	if err := p.fill(c.Name, m, opts); err != nil {
		return err
	}
	c.Materialized = m
	c.Canonical = canonicalMaterialized(c, opts, said)
	return nil
}

// options reads ( name = value, ... ). A comma before the parenthesis is let
// through, as the engine does in lists.
func (p *parser) options(view viewkeeper.Name) (optionList, *viewkeeper.Error) {
	if err := p.expectOp("("); err != nil {
		return nil, err
	}
	opts := optionList{}
	for !p.peek(0).isOp(")") {
		t := p.peek(0)
		if !t.IsName() {
			return nil, p.unexpected("an option's name")
		}
		name := viewkeeper.Fold(t.Name())
		if !slices.Contains(optionNames(), name) {
			if near := Nearest(name, optionNames()); near != "" {
				return nil, p.errorf(viewkeeper.CodeOption, "%s has no option %s; did you mean %s?", view, shown(t), near)
			}
			return nil, p.errorf(viewkeeper.CodeOption, "%s has no option %s; the options are %s", view, shown(t), strings.Join(optionNames(), ", "))
		}
		if opts[name] != nil {
			return nil, p.errorf(viewkeeper.CodeOption, "option %s of %s is given twice; keep one of the two", name, view)
		}
		p.i++
		if !p.acceptOp("=") {
			return nil, p.errorf(viewkeeper.CodeOption, "option %s of %s has no value: write %s = and the value", name, view, name)
		}
		o, err := p.optionValue(view, name)
		if err != nil {
			return nil, err
		}
		opts[name] = o
		if !p.acceptOp(",") {
			break
		}
	}
	return opts, p.expectOp(")")
}

// optionValue reads a literal: a number for update_group, text for all others.
func (p *parser) optionValue(view viewkeeper.Name, name string) (*option, *viewkeeper.Error) {
	t := p.peek(0)
	o := &option{name: name, at: t.At}
	switch {
	case name == optUpdateGroup && t.Kind == Number:
		o.toks = []Token{t}
		o.value = viewkeeper.Fragment{Text: t.Text, Map: []viewkeeper.Segment{{At: 0, Source: t.At}}}
		p.i++
		return o, nil
	case name == optUpdateGroup:
		return nil, p.errorf(viewkeeper.CodeOption, "option update_group of %s takes a whole number from 1 to 2147483647, without quotes", view)
	case !isText(t):
		return nil, p.errorf(viewkeeper.CodeOption, "option %s of %s takes text: write %s = '...', or $$...$$ for a query", name, view, name)
	}
	from := p.i
	d, err := p.literal()
	if err != nil {
		return nil, err
	}
	o.toks = p.stmt.toks[from:p.i]
	o.value = viewkeeper.Fragment{Text: d.text.String(), Map: d.segs}
	if len(o.value.Map) == 0 { // an empty literal still has a place
		o.value.Map = []viewkeeper.Segment{{At: 0, Source: t.At}}
	}
	return o, nil
}

// fill checks the options together and puts their values into m.
func (p *parser) fill(view viewkeeper.Name, m *viewkeeper.Materialized, opts optionList) *viewkeeper.Error {
	if err := p.complete(view, opts); err != nil {
		return err
	}
	bad := func(o *option, format string, args ...any) *viewkeeper.Error {
		err := viewkeeper.ErrorAt(o.at, viewkeeper.CodeOption, "option %s of %s "+format, append([]any{o.name, view}, args...)...)
		return err
	}
	for _, q := range []struct {
		name string
		to   *viewkeeper.Fragment
	}{{optExtract, &m.Extract}, {optCountSrc, &m.CountSrc}, {optMerge, &m.Merge}} {
		o := opts[q.name]
		if err := p.limits.checkBody(view, q.name, o.at, len(o.value.Text)); err != nil {
			return err
		}
		*q.to = fragmentOf(o.value.Text, o.value)
	}
	for _, q := range []struct {
		name string
		to   []*string
	}{{optTime, []*string{&m.MinTimeColumn, &m.MaxTimeColumn}}, {optMinTime, []*string{&m.MinTimeColumn}}, {optMaxTime, []*string{&m.MaxTimeColumn}}} {
		o := opts[q.name]
		if o == nil {
			continue
		}
		column := columnName(o.value.Text)
		if column == "" {
			return bad(o, "is empty; name a column of the extract query")
		}
		for _, to := range q.to {
			*to = column
		}
	}
	if o := opts[optUpdateGroup]; o != nil {
		n, err := strconv.ParseInt(o.value.Text, 10, 32)
		if err != nil || n < 1 {
			return bad(o, "is %s; it takes a whole number from 1 to 2147483647", o.value.Text)
		}
		m.UpdateGroup = int32(n)
	}
	if err := fillDeltas(view, m, opts); err != nil {
		return err
	}
	if o := opts[optSortOrder]; o != nil {
		var why *viewkeeper.Error
		if m.SortOrder, why = parseSortOrder(view, o); why != nil {
			return why
		}
	}
	return nil
}

// complete checks that all that is needed is there, and nothing that excludes it.
func (p *parser) complete(view viewkeeper.Name, opts optionList) *viewkeeper.Error {
	if o := opts[optTime]; o != nil {
		for _, other := range []string{optMinTime, optMaxTime} {
			if x := opts[other]; x != nil {
				return viewkeeper.ErrorAt(max(o.at, x.at), viewkeeper.CodeOption,
					"%s has time_column as well as %s; give time_column when one column holds the time, min_time_column and max_time_column when two do", view, other)
			}
		}
	}
	var missing []string
	for _, name := range []string{optExtract, optCountSrc, optMerge} {
		if opts[name] == nil {
			missing = append(missing, name)
		}
	}
	switch {
	case opts[optTime] != nil:
	case opts[optMinTime] == nil && opts[optMaxTime] == nil:
		missing = append(missing, "time_column (or min_time_column and max_time_column)")
	case opts[optMinTime] == nil:
		missing = append(missing, optMinTime)
	case opts[optMaxTime] == nil:
		missing = append(missing, optMaxTime)
	}
	if len(missing) > 0 {
		return viewkeeper.ErrorAt(p.stmt.toks[p.i-1].At, viewkeeper.CodeOption, "%s lacks %s; add it to WITH (...)", view, strings.Join(missing, ", "))
	}
	return nil
}

// columnName gives the column that an option's text names: as it is, or without
// its double quotes.
func columnName(s string) string {
	from, to := trimSpace(s, 0, len(s))
	s = s[from:to]
	if toks, err := lex(s); err == nil && len(toks) == 1 && toks[0].Kind == QuotedName {
		return toks[0].Name()
	}
	return s
}
