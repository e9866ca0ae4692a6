package ddl

import (
	"strconv"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

const (
	day      = 24 * time.Hour
	maxDelta = 366 * day
)

// parseDelta reads '<n> second|minute|hour|day[s]'. The second result says why
// not, or is "".
func parseDelta(s string) (time.Duration, string) {
	const form = "write a whole number and second, minute, hour or day, for example '1 day' or '15 minutes'"
	fields := strings.Fields(s)
	if len(fields) != 2 {
		return 0, form
	}
	unit := time.Duration(0)
	switch strings.TrimSuffix(viewkeeper.Fold(fields[1]), "s") {
	case "second":
		unit = time.Second
	case "minute":
		unit = time.Minute
	case "hour":
		unit = time.Hour
	case "day":
		unit = day
	default:
		return 0, form
	}
	for i := range len(fields[0]) {
		if !isDigit(fields[0][i]) {
			return 0, form
		}
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || n < 1 || n > int64(maxDelta/unit) {
		return 0, "it may be from 1 second to 366 days"
	}
	return time.Duration(n) * unit, ""
}

// fillDeltas sets the lengths of partitions: the source's is a day when nothing is
// said, the merge's is the source's.
func fillDeltas(view viewkeeper.Name, m *viewkeeper.Materialized, opts optionList) *viewkeeper.Error {
	m.SourceDelta = day
	sourceText := "1 day"
	if o := opts[optSourceDelta]; o != nil {
		sourceText = o.value.Text
	}
	read := func(name string, to *time.Duration) *viewkeeper.Error {
		o := opts[name]
		if o == nil {
			return nil
		}
		d, why := parseDelta(o.value.Text)
		if why != "" {
			return viewkeeper.ErrorAt(o.at, viewkeeper.CodeOption, "option %s of %s is '%s'; %s", name, view, o.value.Text, why)
		}
		*to = d
		return nil
	}
	if err := read(optSourceDelta, &m.SourceDelta); err != nil {
		return err
	}
	m.MergeDelta = m.SourceDelta
	if err := read(optMergeDelta, &m.MergeDelta); err != nil {
		return err
	}
	if m.MergeDelta%m.SourceDelta != 0 {
		return viewkeeper.ErrorAt(opts[optMergeDelta].at, viewkeeper.CodeOption,
			"option merge_partition_delta of %s is '%s', which is not a whole multiple of source_partition_delta, '%s'; make it one",
			view, opts[optMergeDelta].value.Text, sourceText)
	}
	return nil
}

// parseSortOrder reads 'column [ASC | DESC], ...'.
func parseSortOrder(view viewkeeper.Name, o *option) ([]viewkeeper.SortColumn, *viewkeeper.Error) {
	fail := func(at int, format string, args ...any) ([]viewkeeper.SortColumn, *viewkeeper.Error) {
		return nil, viewkeeper.ErrorAt(o.value.Source(at), viewkeeper.CodeOption,
			"option merge_sort_order of %s: "+format+"; write column names with commas between them, each with ASC or DESC if need be", append([]any{view}, args...)...)
	}
	all, bad := lex(o.value.Text)
	if bad != nil {
		return fail(bad.Offset, "%s", bad.Message)
	}
	toks := withoutComments(all)
	var columns []viewkeeper.SortColumn
	for i := 0; ; i++ {
		if i >= len(toks) {
			return fail(len(o.value.Text), "a column is missing at its end")
		}
		if !toks[i].IsName() || toks[i].Name() == "" {
			return fail(toks[i].At, "%s is not a column name", shown(toks[i]))
		}
		c := viewkeeper.SortColumn{Name: toks[i].Name(), Offset: o.value.Source(toks[i].At)}
		for _, other := range columns {
			if viewkeeper.Fold(other.Name) == viewkeeper.Fold(c.Name) {
				return fail(toks[i].At, "column %s is named twice", c.Name)
			}
		}
		if i+1 < len(toks) && (toks[i+1].Is("asc") || toks[i+1].Is("desc")) {
			i++
			c.Desc = toks[i].Is("desc")
		}
		columns = append(columns, c)
		if i++; i == len(toks) {
			return columns, nil
		}
		if !toks[i].isOp(",") {
			return fail(toks[i].At, "%s stands where a comma should", shown(toks[i]))
		}
	}
}
