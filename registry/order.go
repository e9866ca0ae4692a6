package registry

import (
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// order finds the cycles that go through what was wired anew, and gives all of
// that its ranks. It is Tarjan's algorithm, cut off where the ranks of the graph
// before show that no cycle can lie: along unchanged reads ranks fall, so from an
// unchanged entry whose rank is not above that of any entry wired anew which
// somebody reads, no path leads back to one.
func (t *trial) order() {
	// What is in a cycle may be out of it after any change, or in another one.
	changed := map[viewkeeper.Name]bool{}
	for n := range t.wired {
		changed[n] = true
	}
	for _, n := range names(t.after.cyclic) {
		changed[n] = true
	}
	roots := slices.SortedFunc(maps.Keys(changed), viewkeeper.Name.Compare)

	o := &orderer{trial: t, changed: changed, floor: rankCyclic, at: map[viewkeeper.Name]*visit{}}
	for _, n := range roots {
		if old := t.before.get(n); old != nil && old.metrics.rank < o.floor && t.after.isMentioned(n) {
			o.floor = old.metrics.rank
		}
	}
	for _, n := range roots {
		if o.at[n] == nil {
			o.visit(n)
		}
	}
}

// isMentioned reports whether any text may read name.
func (g *graph) isMentioned(name viewkeeper.Name) bool {
	any := false
	g.mentioners(name, func(*entry) bool {
		any = true
		return false
	})
	return any
}

type orderer struct {
	*trial
	changed map[viewkeeper.Name]bool
	floor   int
	at      map[viewkeeper.Name]*visit
	stack   []viewkeeper.Name
	next    int
}

type visit struct {
	index, low int
	onStack    bool
}

func (o *orderer) visit(n viewkeeper.Name) *visit {
	v := &visit{index: o.next, low: o.next, onStack: true}
	o.next++
	o.at[n] = v
	o.stack = append(o.stack, n)
	e := o.after.get(n)
	self := false
	e.reads(func(_ int, target viewkeeper.Name) {
		self = self || target == n
		w := o.at[target]
		switch {
		case w == nil:
			if r := o.after.get(target).metrics.rank; !o.changed[target] && r < rankCyclic && r <= o.floor {
				return
			}
			v.low = min(v.low, o.visit(target).low)
		case w.onStack:
			v.low = min(v.low, w.index)
		}
	})
	if v.low != v.index {
		return v
	}
	// n is the root of a component: all that it reads outside of it has its rank.
	i := slices.Index(o.stack, n)
	members := slices.Clone(o.stack[i:])
	o.stack = o.stack[:i]
	for _, m := range members {
		o.at[m].onStack = false
	}
	if len(members) > 1 || self {
		in := make(map[viewkeeper.Name]bool, len(members))
		for _, m := range members {
			in[m] = true
		}
		for _, m := range members {
			o.cycles[m] = o.after.cyclePath(m, in)
			o.ranks[m] = rankCyclic
		}
		return v
	}
	o.ranks[n] = o.above(e)
	return v
}

// cyclePath is a shortest path from name back to itself within a component, both
// ends included.
func (g *graph) cyclePath(name viewkeeper.Name, in map[viewkeeper.Name]bool) []viewkeeper.Name {
	from := map[viewkeeper.Name]viewkeeper.Name{}
	queue := []viewkeeper.Name{name}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		done := false
		g.get(n).reads(func(_ int, target viewkeeper.Name) {
			if _, ok := from[target]; ok || !in[target] || done {
				return
			}
			from[target] = n
			queue = append(queue, target)
			done = target == name
		})
		if done {
			break
		}
	}
	path := []viewkeeper.Name{name}
	for n := from[name]; n != name; n = from[n] {
		path = append(path, n)
	}
	path = append(path, name)
	slices.Reverse(path)
	return path
}
