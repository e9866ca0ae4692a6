package registry

import (
	"fmt"
	"math"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// attempt is one entry on its way through a rank.
type attempt struct {
	entry *entry
	// texts are the qualified parts, with the way back to the parts' texts.
	texts []string
	backs []ddl.OffsetMap
	// bound holds the planner's answers by part, once they are there.
	bound []*Bound
}

// evaluate works out the entries of one rank, none of which reads another one,
// and schedules the readers of those that changed for them.
func (t *trial) evaluate(level []*task) error {
	var all, asks []*attempt
	for _, k := range level {
		e := *t.after.get(k.name)
		a := &attempt{entry: &e}
		e.failure = guard(func() *failure { return t.rules(&e) })
		if e.failure != nil {
			e.planned = nil
		} else if e.planned == nil || k.plan {
			asks = append(asks, a)
		}
		all = append(all, a)
	}
	if err := t.plan(asks); err != nil {
		return err
	}
	for _, a := range all {
		e := a.entry
		if e.failure == nil {
			e.failure = e.planned.failure
		}
		if e.failure == nil {
			e.failure = guard(func() *failure { return t.groups(e) })
		}
		if reason, ok := t.refused[e.name()]; ok && e.failure == nil {
			e.failure = failAt(-1, StageBuild, viewkeeper.CodeBind, reason)
			e.failure.refused = true
		}
		t.finish(e)
	}
	return nil
}

// guard runs f; a panic is a failure of the one definition.
func guard(f func() *failure) (out *failure) {
	defer func() {
		if p := recover(); p != nil {
			out = panicked(p)
		}
	}()
	return f()
}

// finish puts an evaluated entry into the graph, keeps the stubs in step, and
// schedules those who read it if they can tell a difference.
func (t *trial) finish(e *entry) {
	name := e.name()
	e.columns = nil
	if e.ok() {
		e.columns = e.planned.columns
	} else {
		f := *e.failure
		f.since = t.version
		if old := t.before.get(name); old != nil && !old.ok() {
			f.since = old.failure.since
		}
		e.failure = &f
	}
	e.built = e.builtHash()
	last := t.last(name)
	t.after.put(e)
	t.touched[name] = true
	t.seen[name] = e
	t.ranks[name] = e.metrics.rank
	t.restub(e)
	if sameExports(last, e) {
		return
	}
	plan := last == nil || last.ok() != e.ok() || !sameColumns(last.columns, e.columns)
	for _, r := range t.after.readers(name) {
		if r.name() != name {
			t.schedule(r.name(), plan)
		}
	}
}

// restub queues what the scratch catalog is to have of e, where that is not what
// it has or is about to have.
func (t *trial) restub(e *entry) {
	want := map[viewkeeper.Name][]viewkeeper.Column{}
	for _, s := range e.stubs() {
		want[s.Name] = s.Columns
	}
	have := map[viewkeeper.Name][]viewkeeper.Column{}
	if old := t.before.get(e.name()); old != nil {
		for _, s := range old.stubs() {
			have[s.Name] = s.Columns
		}
	}
	for _, n := range []viewkeeper.Name{e.name(), sourceStub(e.name())} {
		if s, ok := t.trial[n]; ok {
			have[n] = s.Columns
		}
		if !sameColumns(have[n], want[n]) {
			t.stub(n, want[n])
		}
	}
}

// rules is what can be said of an entry without planning it. It also sets the
// entry's metrics, the group of a materialized one apart.
func (t *trial) rules(e *entry) *failure {
	name, s := e.name(), e.source
	e.metrics = metrics{rank: t.above(e), depth: 1, leaves: 1}
	if s.err != nil {
		return s.err
	}
	if _, ok := t.base.relations[name]; ok {
		return failAt(s.create.NameOffset, StageValidate, viewkeeper.CodeName,
			fmt.Sprintf("the base has a relation %s, which hides this definition; rename the relation, or drop the definition and create it under another name", name))
	}
	if path := t.cycles[name]; path != nil {
		f := failAt(t.cyclePlace(e, path), StageValidate, viewkeeper.CodeCycle, cycleReason(path))
		f.cycle = true
		return f
	}
	// What is missing is e's own fault and comes first: e is collateral only if
	// nothing else is wrong with it.
	missing, broken := -1, -1
	for i := range s.refs {
		switch target := t.definition(e.refs[i]); {
		case s.refs[i].Unused:
		case e.refs[i].name.IsZero() && missing < 0:
			missing = i
		case target != nil && !target.ok() && broken < 0:
			broken = i
		}
	}
	if missing >= 0 {
		if f := t.missing(e, missing, broken >= 0); f != nil {
			return f
		}
	}
	if broken >= 0 {
		target := t.after.get(e.refs[broken].name)
		f := failAt(-1, StageBuild, viewkeeper.CodeBind, "reads "+target.name().String()+s.refs[broken].through())
		f.root = target.root()
		return f
	}
	return t.measure(e)
}

// through says by which macro a reference comes, if by one.
func (r *ref) through() string {
	if r.Macro.IsZero() {
		return ""
	}
	return " through the macro " + plainName(r.Macro.String())
}

// refPlace is where a reference stands in the definition's SQL, or -1.
func (s *source) refPlace(i int) int {
	if r := &s.refs[i]; r.inText() {
		return s.place(r.part, noEdits, r.At)
	}
	return -1
}

// definition gives the entry that a reference resolves to, or nil.
func (t *trial) definition(r resolved) *entry {
	if r.base || r.name.IsZero() {
		return nil
	}
	return t.after.get(r.name)
}

// missing refuses a reference to nothing where the planner cannot be asked to:
// these changes remove what it meant (so that there is more to say), the query
// reads something broken as well (which has no stub), or the name is one of the
// registry's own in the scratch catalog. Of any other unknown name the planner
// says more, so there is no failure yet.
func (t *trial) missing(e *entry, i int, always bool) *failure {
	r := &e.source.refs[i]
	for _, c := range r.candidates {
		if t.gone[c] {
			return failAt(e.source.refPlace(i), StageBuild, viewkeeper.CodeBind, fmt.Sprintf("reads %s, which is no longer there%s", c, r.through()))
		}
	}
	if always || strings.HasPrefix(r.View, sourcePrefix) {
		return failAt(e.source.refPlace(i), StageBuild, viewkeeper.CodeBind, fmt.Sprintf("there is no %s to read%s", r.candidates[0], r.through()))
	}
	return nil
}

// cyclePlace is where the text names the next one on the path.
func (t *trial) cyclePlace(e *entry, path []viewkeeper.Name) int {
	for i, r := range e.refs {
		if r.name == path[1] {
			return e.source.refPlace(i)
		}
	}
	return -1
}

func cycleReason(path []viewkeeper.Name) string {
	if len(path) == 2 {
		return fmt.Sprintf("%s reads itself", path[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s reads itself: it reads ", path[0])
	for i, n := range path[1:] {
		if i > 0 {
			b.WriteString(", which reads ")
		}
		if i == 20 && len(path) > 23 {
			fmt.Fprintf(&b, "%d more, the last of which reads %s", len(path)-i-2, path[len(path)-1])
			break
		}
		b.WriteString(n.String())
	}
	return b.String()
}

// measure expands an entry's parts by what they read, holds them to the limits,
// and says what a reader will expand in turn.
func (t *trial) measure(e *entry) *failure {
	s := e.source
	m := &e.metrics
	for p := range s.parts {
		parsed := &s.parts[p].parsed
		depth, leaves, layers := 1, parsed.Leaves, parsed.Layers
		var volatile string
		var volatileAt int
		if v := parsed.Volatile; v != nil {
			volatile, volatileAt = fmt.Sprintf("%s (in %s)", v.Message, e.name()), s.place(p, noEdits, v.At)
		}
		for i := range s.refs {
			r := &s.refs[i]
			if r.part != p || r.Unused {
				continue
			}
			found := ""
			if target := t.definition(e.refs[i]); target != nil {
				depth = max(depth, 1+target.metrics.depth)
				leaves = min(leaves+target.metrics.leaves-1, leavesCap)
				layers = max(layers, r.Layers+target.metrics.layers)
				m.group = max(m.group, target.metrics.group)
				found = target.metrics.volatile
			} else if rel := t.base.relations[e.refs[i].name]; rel != nil && rel.Volatile != "" {
				found = fmt.Sprintf("%s (in %s)", rel.Volatile, rel.Name)
			}
			if found != "" && volatile == "" {
				volatile, volatileAt = found, s.refPlace(i)
			}
		}
		role := s.parts[p].role
		if f := t.limits(e, role, depth, leaves, layers); f != nil {
			return f
		}
		if role != roleBody && volatile != "" {
			return failAt(volatileAt, StageValidate, viewkeeper.CodeVolatile,
				fmt.Sprintf("%s: %s; what is stored must not depend on when it is computed", role.option(), volatile))
		}
		if role == roleBody || role == roleMerge {
			m.depth, m.leaves, m.layers, m.volatile = depth, leaves, layers, volatile
		}
	}
	return nil
}

// limits holds a definition that is judged to the limits. One that was accepted under
// wider ones may stay what it is, and may not become more.
func (t *trial) limits(e *entry, role role, depth, leaves, layers int) *failure {
	if !t.judging {
		return nil
	}
	l := t.base.options.Limits
	name := e.name()
	if old, renamed := t.was[name]; renamed {
		name = old
	}
	if old := t.before.get(name); old != nil && old.ok() {
		l.Depth, l.Leaves, l.Layers = max(l.Depth, old.metrics.depth), max(l.Leaves, old.metrics.leaves), max(l.Layers, old.metrics.layers)
	}
	over := func(what string, n, limit int, hint string) *failure {
		return failAt(-1, StageValidate, viewkeeper.CodeComplexity,
			fmt.Sprintf("with the definitions that it reads expanded, %s has %d %s; the limit is %d; %s", role.option(), n, what, limit, hint))
	}
	switch {
	case depth > l.Depth:
		return over("definitions on top of one another", depth, l.Depth, "join some of them into one")
	case leaves > l.Leaves:
		return over("relations to scan", leaves, l.Leaves, "read fewer, or make one below materialized")
	case layers > l.Layers:
		return over("layers of GROUP BY, window and EXISTS", layers, l.Layers, "use fewer, or make one below materialized")
	}
	return nil
}

// The update groups of materialized definitions that give none.
const (
	firstGroup = 1000
	groupStep  = 1000
)

// groups gives a materialized definition its update group, which must be above
// that of everything it reads. For a plain one the highest that it reads stands
// in its metrics already.
func (t *trial) groups(e *entry) *failure {
	if !e.materialized() {
		return nil
	}
	highest, given := e.metrics.group, e.source.create.Materialized.UpdateGroup
	at := optionPlace(e.source.create, "update_group")
	switch {
	case given != 0 && given <= highest:
		return failAt(at, StageValidate, viewkeeper.CodeUpdateGroup,
			fmt.Sprintf("update_group is %d, and it reads a materialized view of group %d; it must be above that", given, highest))
	case given != 0:
		e.metrics.group = given
	case highest == 0:
		e.metrics.group = firstGroup
	case highest > math.MaxInt32-groupStep:
		return failAt(-1, StageValidate, viewkeeper.CodeUpdateGroup,
			fmt.Sprintf("it reads a materialized view of group %d, and %d above that there is none; give an update_group", highest, groupStep))
	default:
		e.metrics.group = highest + groupStep
	}
	return nil
}

// optionPlace is where an option's value stands in the definition's SQL, or -1.
func optionPlace(c *viewkeeper.Create, option string) int {
	if at, ok := c.Materialized.Places[option]; ok {
		return at
	}
	return -1
}
