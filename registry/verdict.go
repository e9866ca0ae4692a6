package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// try is points 4 to 8: build the catalog as it would be, and see who is hurt.
// next is set only when the statement is accepted and advance is set.
func (j *judgment) try(ctx context.Context, advance bool) error {
	rows := make([]viewkeeper.Row, 0, len(j.order))
	for _, n := range j.order {
		rows = append(rows, j.writes[n].row)
	}
	t := begin(ctx, j.base, j.before, j.version)
	t.judging, t.was = true, map[viewkeeper.Name]viewkeeper.Name{}
	for from, to := range j.renames {
		t.was[to] = from
	}
	keep := false
	defer func() { t.end(keep) }()
	if err := t.apply(rows, nil); err != nil {
		return fmt.Errorf("judge %s: %w", j.d.StatementID, err)
	}
	j.trial = t
	d := t.delta()
	j.carryOver(d)
	policy := j.policy()
	j.describe(d)
	refusal := j.own()
	if refusal == nil {
		refusal = j.renamedExactly()
	}
	if refusal == nil {
		refusal = j.dependents(d, policy)
	}
	if refusal == nil {
		var err error
		if refusal, err = j.algebra(); err != nil {
			return fmt.Errorf("judge %s: %w", j.d.StatementID, err)
		}
	}
	j.warn()
	if refusal == nil {
		j.accept(rows, d)
		refusal = j.fits()
	}
	if refusal != nil {
		j.refuse(refusal)
		return nil
	}
	if advance {
		keep = true
		j.next = &Factory{base: j.base, version: j.version, graph: t.after}
	}
	return nil
}

// carryOver takes from the broken those that only have another name now: they
// were broken under the old one, and block nothing.
func (j *judgment) carryOver(d *delta) {
	for from, to := range j.renames {
		if !j.before.get(from).ok() {
			d.broken = slices.DeleteFunc(d.broken, func(n viewkeeper.Name) bool { return n == to })
		}
	}
}

// describe fills in what the statement does or would do.
func (j *judgment) describe(d *delta) {
	for _, n := range j.order {
		w := j.writes[n]
		if w.renamed { // shown under its old name
			continue
		}
		c := viewkeeper.Change{Name: n, Action: w.action}
		if old := j.before.get(n); old != nil {
			c.ColumnsBefore = old.columns
		}
		after := n
		if to, ok := j.renames[n]; ok {
			after = to
			c.RenamedTo = &to
		}
		if e := j.trial.after.get(after); e != nil {
			c.ColumnsAfter = e.columns
		}
		j.d.Changed = append(j.d.Changed, c)
		if w.action == viewkeeper.ActionDropped {
			j.d.Dropped = append(j.d.Dropped, n)
		}
	}
	slices.SortFunc(j.d.Dropped, viewkeeper.Name.Compare)
	const full = 100
	listed := 0
	for _, n := range d.output {
		if j.writes[n] != nil {
			continue
		}
		c := viewkeeper.Change{Name: n, Action: viewkeeper.ActionOutputChanged}
		if listed++; listed <= full {
			c.ColumnsBefore, c.ColumnsAfter = j.before.get(n).columns, j.trial.after.get(n).columns
		}
		j.d.Changed = append(j.d.Changed, c)
	}
	for _, n := range d.repaired {
		if w := j.writes[n]; w == nil || w.action != viewkeeper.ActionRenamed {
			j.d.Repaired = append(j.d.Repaired, n)
		}
	}
}

// own refuses a statement whose own definitions do not build: the first that
// fails of itself, else the first that reads something broken.
func (j *judgment) own() *viewkeeper.Error {
	var first *write
	for _, n := range j.order {
		w := j.writes[n]
		e := j.trial.after.get(n)
		if w.create == nil || e.ok() {
			continue
		}
		if first == nil || e.failure.root.IsZero() && !j.trial.after.get(first.row.Name).failure.root.IsZero() {
			first = w
		}
	}
	if first == nil {
		return nil
	}
	e := j.trial.after.get(first.row.Name)
	f := e.failure
	offset := f.offset
	if offset >= 0 {
		offset += first.create.Offset
	}
	message := f.reason
	if !f.root.IsZero() {
		message = fmt.Sprintf("%s, which is broken: %s; repair %s first", f.reason, j.trial.after.get(f.root).failure.reason, f.root)
	}
	if _, set := j.stmt.(*viewkeeper.ChangeSet); set {
		if f.code != viewkeeper.CodeCycle { // which names it already
			message = fmt.Sprintf("%s: %s", e.name(), message)
		}
		j.d.Broken = j.trial.delta().brokenList(nil)
	}
	return viewkeeper.ErrorAt(offset, f.code, "%s", message)
}

// dependents refuses a statement that breaks others. policy is the definitions
// that would no longer hold what the installation demands.
func (j *judgment) dependents(d *delta, policy []viewkeeper.Broken) *viewkeeper.Error {
	for _, b := range policy {
		if w := j.writes[b.Name]; w != nil && w.create != nil {
			return viewkeeper.ErrorAt(w.at, viewkeeper.CodePolicy, "%s: %s", b.Name, b.Reason)
		}
	}
	broken := append(d.brokenList(nil), policy...)
	if len(broken) == 0 {
		return nil
	}
	j.d.Broken = broken
	code := viewkeeper.CodeBreaksDependents
	var roots, rest []viewkeeper.Name
	reason := ""
	for _, b := range broken {
		if b.RootCause != nil {
			rest = append(rest, b.Name)
			continue
		}
		if e := j.trial.after.get(b.Name); e.failure != nil && engineLost(e.failure.code) {
			code = e.failure.code
		}
		if len(roots) == 0 {
			reason = b.Reason
		}
		roots = append(roots, b.Name)
	}
	message := nameList(roots) + " would break"
	if len(rest) > 0 {
		message += ", and with it " + nameList(rest)
		if len(roots) > 1 {
			message = nameList(roots) + " would break, and with them " + nameList(rest)
		}
	}
	message += ": " + reason
	if len(roots) > 1 {
		message += fmt.Sprintf(" (%s; the others are listed)", roots[0])
	}
	if j.onlyDrops() {
		message += "; drop or change them in the same change set, or say CASCADE"
	}
	return viewkeeper.Errorf(code, "%s", message)
}

func (j *judgment) onlyDrops() bool {
	for _, w := range j.writes {
		if w.action != viewkeeper.ActionDropped {
			return false
		}
	}
	return true
}

// policy finds the materialized definitions that do not hold what the
// installation demands, among those written and those that held it before.
func (j *judgment) policy() []viewkeeper.Broken {
	p := j.base.options.Policy
	if len(p.Require) == 0 {
		return nil
	}
	var out []viewkeeper.Broken
	for n := range j.trial.touched {
		e := j.trial.after.get(n)
		if e == nil || !e.ok() || !e.materialized() {
			continue
		}
		why := p.violation(e.columns)
		if why == "" {
			continue
		}
		old := j.before.get(n)
		w := j.writes[n]
		if w != nil && w.create != nil || old != nil && old.ok() && p.violation(old.columns) == "" {
			out = append(out, viewkeeper.Broken{Name: n, Reason: why})
		}
	}
	slices.SortFunc(out, func(a, b viewkeeper.Broken) int { return a.Name.Compare(b.Name) })
	return out
}

// violation says which demand columns do not meet, or "".
func (p Policy) violation(cols []viewkeeper.Column) string {
	for _, r := range p.Require {
		met := slices.ContainsFunc(r.AnyOf, func(name string) bool {
			i := findColumn(cols, name)
			return i >= 0 && (len(r.Types) == 0 || slices.ContainsFunc(r.Types, func(t string) bool { return viewkeeper.Fold(t) == viewkeeper.Fold(cols[i].Type) }))
		})
		if met {
			continue
		}
		what := fmt.Sprintf("a column %s", orList(r.AnyOf))
		if len(r.Types) > 0 {
			what += " of type " + orList(r.Types)
		}
		return fmt.Sprintf("a materialized view must have %s here (it has %s)", what, columnList(cols))
	}
	return ""
}

func orList(items []string) string {
	out := ""
	for i, s := range items {
		if i > 0 {
			out += " or "
		}
		out += s
	}
	return out
}

// accept decides for the statement.
func (j *judgment) accept(rows []viewkeeper.Row, d *delta) {
	j.d.Verdict = viewkeeper.Accepted
	j.rows = slices.Clone(rows)
	slices.SortFunc(j.rows, func(a, b viewkeeper.Row) int { return a.Name.Compare(b.Name) })
	for _, r := range j.rows {
		j.d.Rows = append(j.d.Rows, viewkeeper.RowJSON{Name: r.Name, Version: r.Version, Dropped: !r.Live(), Definition: r.Definition})
	}
	j.d.Message = j.summary()
}

// unchanged decides that there is nothing to do.
func (j *judgment) unchanged() {
	j.d.Verdict = viewkeeper.Unchanged
	j.d.Message = "nothing changes"
	if len(j.same) > 0 {
		j.d.Message += ": " + j.same[0]
	}
	if len(j.same) > 1 {
		j.d.Message += fmt.Sprintf(", and %d more alike", len(j.same)-1)
	}
}

// summary says in one line what an accepted statement did.
func (j *judgment) summary() string {
	verbs := map[viewkeeper.Action][]viewkeeper.Name{}
	var rewritten []viewkeeper.Name
	outputs := 0
	for _, c := range j.d.Changed {
		w := j.writes[c.Name]
		switch {
		case w == nil:
			outputs++
		case w.rewritten:
			rewritten = append(rewritten, c.Name)
		default:
			verbs[c.Action] = append(verbs[c.Action], c.Name)
		}
	}
	out := ""
	add := func(s string) {
		if out != "" {
			out += "; "
		}
		out += s
	}
	for _, a := range []viewkeeper.Action{viewkeeper.ActionCreated, viewkeeper.ActionReplaced, viewkeeper.ActionDropped} {
		if len(verbs[a]) > 0 {
			add(fmt.Sprintf("%s %s", a, nameList(verbs[a])))
		}
	}
	for _, n := range verbs[viewkeeper.ActionRenamed] {
		add(fmt.Sprintf("renamed %s to %s", n, j.renames[n]))
	}
	if names := verbs[viewkeeper.ActionCommented]; len(names) > 0 {
		add("commented on " + nameList(names))
	}
	if len(rewritten) > 0 {
		add("rewrote " + nameList(rewritten))
	}
	if outputs > 0 {
		add(fmt.Sprintf("the output of %d other definition%s changes", outputs, plural(outputs)))
	}
	if len(j.d.Repaired) > 0 {
		add("repaired " + nameList(j.d.Repaired))
	}
	if n := len(j.d.Warnings); n > 0 {
		add(fmt.Sprintf("%d warning%s", n, plural(n)))
	}
	return out
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// fits refuses what would not fit one table record: the commit row holds the
// decision, which has the rows too, and the rows.
func (j *judgment) fits() *viewkeeper.Error {
	limit := j.base.options.Limits.Record
	slack := min(64<<10, limit/8) // the commit row's own fields, and names of the format
	bound := 0
	for _, r := range j.rows {
		if d := r.Definition; d != nil {
			bound += len(d.SQL) + 200
			if d.Comment != nil {
				bound += len(*d.Comment)
			}
		}
		bound += 300
	}
	for _, c := range j.d.Changed {
		bound += 300 + 200*(len(c.ColumnsBefore)+len(c.ColumnsAfter))
	}
	// JSON makes at most six bytes of one.
	if 6*(2*bound+len(j.sub.SQL))+slack < limit {
		return nil
	}
	decision, err := json.Marshal(j.d)
	if err != nil {
		return viewkeeper.Errorf(viewkeeper.CodeInternal, "the decision cannot be written: %v", err)
	}
	rows, err := json.Marshal(j.d.Rows)
	if err != nil {
		return viewkeeper.Errorf(viewkeeper.CodeInternal, "the rows cannot be written: %v", err)
	}
	if size := len(decision) + len(rows) + slack; size > limit {
		return viewkeeper.Errorf(viewkeeper.CodeTooLarge,
			"what the statement makes of the catalog takes %d bytes, for %d definitions; one record holds %d; split it into several", size, len(j.rows), limit)
	}
	return nil
}
