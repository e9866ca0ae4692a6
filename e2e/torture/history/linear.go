package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// What is linearizable of a catalog, name by name: there is an order of the
// statements about a name that respects real time and explains every verdict.
//
// The model of a name is a register: absent, or there at the version of the
// statement that last changed its row. A verdict says something of that state:
//
//   - accepted: the precondition held (CREATE: absent; DROP, COMMENT: there;
//     expect_version: exactly that version), and the row is now as the decision's
//     rows say: at the decision's version, or gone;
//   - unchanged: it was there (DROP IF EXISTS: absent);
//   - EXISTS, NOT_FOUND, STALE_VERSION: the precondition did not hold;
//   - BIND, CYCLE, BREAKS_DEPENDENTS: whether it builds depends on other names, so
//     nothing is asked of that; but the precondition, which comes first, held.
//
// Other refusals (form) say nothing of the state and are left out. A statement
// about several names is one operation for each of them, all within its one span;
// that they happen at once is held by the walk along the log, not here. A refused
// change set does not say which member it was for, so it counts only where all
// preconditions held. A rename also moves its readers to its version, a cascade
// drops them: the decision's rows name them.
//
// The span of a statement is from the call to the answer. Where no answer came it
// is to the first moment at which anybody had a version that holds it: from then on
// it had happened. One that is not in the log never happened and is left out. Which
// offset it has is not used for the order: that would be the answer.
type register struct {
	there   bool
	version int64
}

// request and outcome are an operation on one name.
type request struct {
	kind   string // of the Change; "" for a row that only follows from another name's
	expect *int64
}

type outcome struct {
	verdict, code string
	version       int64
	gone          bool // accepted: the row is gone
}

// step reports whether a verdict can be one of this state, and gives the state after it.
func (r register) step(in request, out outcome) (bool, register) {
	have := int64(0)
	if r.there {
		have = r.version
	}
	current := in.expect == nil || *in.expect == have
	held := true
	switch in.kind {
	case Create, IfNotExists, "to": // "to" is the new name of a rename
		held = !r.there
	case Drop, Cascade, Comment, Rename:
		held = r.there
	}
	switch {
	case out.code == "EXISTS":
		return !held, r
	case out.code == "NOT_FOUND":
		return !held, r
	case out.code == "STALE_VERSION":
		return (held || in.kind == IfNotExists) && !current, r
	case out.verdict == "refused":
		return held && current, r
	case out.verdict == "unchanged":
		return (in.kind == DropIf) != r.there && current, r
	case out.gone:
		return r.there && current, register{}
	case in.kind == "":
		return r.there, register{true, out.version}
	}
	return held && current, register{true, out.version}
}

func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, in, out any) (bool, any) {
			ok, next := state.(register).step(in.(request), out.(outcome))
			return ok, next
		},
		DescribeOperation: func(in, out any) string {
			r, o := in.(request), out.(outcome)
			expect := ""
			if r.expect != nil {
				expect = fmt.Sprintf(" expect %d", *r.expect)
			}
			return fmt.Sprintf("%s%s: %s %s %d", cmp.Or(r.kind, "follows"), expect, o.verdict, o.code, o.version)
		},
		DescribeState: func(state any) string {
			if r := state.(register); r.there {
				return fmt.Sprint("at ", r.version)
			}
			return "absent"
		},
	}
}

// linear searches an order for each name.
func (c *checker) linear(budget time.Duration) {
	byName := c.operations()
	until := time.Now().Add(budget)
	for _, name := range slices.Sorted(mapKeys(byName)) {
		// Each name gets an equal part of what is left, so that one does not use up all of it.
		left := max(time.Until(until)/time.Duration(len(byName)), time.Second)
		switch result := porcupine.CheckOperationsTimeout(model(), byName[name], left); result {
		case porcupine.Illegal:
			c.find("linear", "no order of the %d statements about %s explains their verdicts", len(byName[name]), name)
		case porcupine.Unknown:
			c.find("linear", "no order of the %d statements about %s was found within %v; check the kept history again with more time", len(byName[name]), name, left)
		}
	}
}

// Visualize writes the operations on one name, with the longest order that was found, as a page.
func (h *History) Visualize(name string, budget time.Duration, w io.Writer) error {
	c := &checker{h: h, count: map[string]int{}, texts: map[string]Statement{}, topic: map[int64]Told{}, first: map[string]int64{}}
	c.decisions()
	_, info := porcupine.CheckOperationsVerbose(model(), c.operations()[name], budget)
	return porcupine.Visualize(model(), info, w)
}

// operations are the statements that were decided, for each name that they say something of.
func (c *checker) operations() map[string][]porcupine.Operation {
	seen := c.firstSeen()
	end := Time(1)
	for _, op := range c.h.Ops {
		end = max(end, op.Return)
	}
	byID, byText := map[string]int64{}, map[string]int64{}
	for _, v := range c.versions() {
		if t := c.topic[v]; t.Code != "ID_REUSED" {
			byID[t.ID] = v
		}
	}
	for offset, r := range c.h.Log {
		byText[r.SQL] = int64(offset) + 1 // texts sent without an id are sent once
	}
	out := map[string][]porcupine.Operation{}
	for _, op := range c.h.Ops {
		if op.Again {
			continue
		}
		version := byID[op.Statement.ID]
		switch {
		case op.Told != nil:
			version = op.Told.Version
		case op.Statement.ID == "" && op.Offset >= 0:
			version = op.Offset + 1
		case op.Statement.ID == "":
			version = byText[op.Statement.SQL()]
		}
		t, decided := c.topic[version]
		if !decided {
			continue
		}
		ret := op.Return
		if op.Told == nil {
			ret = end
			if at, ok := seen(version); ok {
				ret = max(at, op.Call)
			}
		}
		for name, inout := range effects(op.Statement, t) {
			out[name] = append(out[name], porcupine.Operation{
				ClientId: op.Client, Input: inout.request, Call: int64(op.Call), Output: inout.outcome, Return: int64(ret)})
		}
	}
	return out
}

type effect struct {
	request
	outcome
}

// effects says what a decided statement tells of each name.
func effects(s Statement, t Told) map[string]effect {
	out := map[string]effect{}
	told := outcome{verdict: t.Verdict, code: t.Code, version: t.Version}
	switch t.Code {
	case "BIND", "CYCLE", "BREAKS_DEPENDENTS", "":
	case "EXISTS", "NOT_FOUND", "STALE_VERSION":
		if s.Set || len(s.Changes) == 0 || len(s.Changes[0].More) > 0 {
			return out // it does not say for which name
		}
	default:
		return out
	}
	for _, ch := range s.Changes {
		for _, n := range append([]string{ch.Name}, ch.More...) {
			out[n] = effect{request{ch.Kind, s.Expect}, told}
		}
		if ch.Kind != Rename {
			continue
		}
		switch t.Code {
		case "EXISTS": // the old name was there, the new one too; expect is asked afterwards
			out[ch.Name] = effect{request{Rename, nil}, outcome{verdict: "refused"}}
			out[ch.To] = effect{request{"to", nil}, told}
		case "NOT_FOUND":
		default:
			out[ch.To] = effect{request{"to", nil}, told}
			if t.Code == "STALE_VERSION" { // the new name was free
				out[ch.To] = effect{request{"to", nil}, outcome{verdict: "refused"}}
			}
		}
	}
	if t.Verdict != "accepted" {
		return out
	}
	written := map[string]bool{}
	for _, r := range t.Rows {
		e := out[r.Name]
		e.outcome = told
		e.gone = r.Dropped
		out[r.Name] = e
		written[r.Name] = true
	}
	for n, e := range out {
		if !written[n] { // a part of the set that changed nothing, or a drop of nothing
			e.outcome = outcome{verdict: "unchanged"}
			out[n] = e
		}
	}
	return out
}

// firstSeen gives the first moment at which somebody had a version or a later one.
func (c *checker) firstSeen() func(version int64) (Time, bool) {
	type point struct {
		version int64
		at      Time
	}
	var points []point
	for _, s := range c.h.Samples {
		points = append(points, point{s.Version, s.Return})
	}
	for _, q := range c.h.Queries { // of an absent one too: the node had at least that version
		points = append(points, point{q.Version, q.Return})
	}
	for _, op := range c.h.Ops {
		if op.Told != nil {
			points = append(points, point{op.Told.Version, op.Return})
		}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.version, b.version) })
	for i := len(points) - 2; i >= 0; i-- {
		points[i].at = min(points[i].at, points[i+1].at)
	}
	return func(version int64) (Time, bool) {
		i, _ := slices.BinarySearchFunc(points, version, func(p point, v int64) int { return cmp.Compare(p.version, v) })
		if i == len(points) {
			return 0, false
		}
		return points[i].at, true
	}
}
