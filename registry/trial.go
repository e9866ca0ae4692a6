package registry

import (
	"container/heap"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/viewkeeper/viewkeeper"
)

// trial applies changes to a graph and works out all that follows from them, and
// nothing else. It is the one core under judging, building and reloading:
//
//  1. read the texts that changed, in one Parse call;
//  2. resolve again what mentions a name that came or went;
//  3. find cycles among what was wired anew, and give it ranks (order.go);
//  4. evaluate rank by rank, one Bind call for each that needs the planner. Who
//     reads an entry is evaluated only when what it sees of the entry changed:
//     its columns, whether it builds, its metrics.
//
// before is never changed; after is the result. Whoever began the trial ends it
// with keep or without, which costs nothing but a Settle.
type trial struct {
	*session
	before, after *graph
	version       viewkeeper.Version
	// judging holds the definitions to the limits. What is built of committed rows is
	// not judged again, whatever the limits are now.
	judging bool
	// was names what a renamed definition was called before.
	was map[viewkeeper.Name]viewkeeper.Name

	// touched are the names that were changed, wired anew or evaluated.
	touched map[viewkeeper.Name]bool
	// gone and wired: what the changes removed, and what refers to other things
	// than before (the text is new, or a name came or went).
	gone  map[viewkeeper.Name]bool
	wired map[viewkeeper.Name]bool
	// captures are the references of unchanged texts that stand for something else now.
	captures []capture
	// cycles holds, for each entry that reads itself, the path on which it does.
	cycles map[viewkeeper.Name][]viewkeeper.Name

	queue ranked
	tasks map[viewkeeper.Name]*task
	// seen is what readers last saw of an entry in this trial, ranks the ranks
	// that are newer than the entry's.
	seen  map[viewkeeper.Name]*entry
	ranks map[viewkeeper.Name]int

	// kept are answers of the planner's from an earlier run.
	kept Kept

	// refused is why the applier does not take a definition that builds.
	refused map[viewkeeper.Name]string
}

// capture says that reference ref of reader stood for from and stands for to.
type capture struct {
	reader   viewkeeper.Name
	ref      int
	from, to viewkeeper.Name
}

// task is an entry to be evaluated; plan asks the planner again, too.
type task struct {
	name viewkeeper.Name
	rank int
	plan bool
}

// begin starts a trial over g. It locks the base until end.
func begin(ctx context.Context, base *Base, g *graph, version viewkeeper.Version) *trial {
	return &trial{
		session: base.begin(ctx, g),
		before:  g, after: g.clone(), version: version,
		touched: map[viewkeeper.Name]bool{}, gone: map[viewkeeper.Name]bool{}, wired: map[viewkeeper.Name]bool{},
		cycles: map[viewkeeper.Name][]viewkeeper.Name{}, tasks: map[viewkeeper.Name]*task{},
		seen: map[viewkeeper.Name]*entry{}, ranks: map[viewkeeper.Name]int{},
		refused: map[viewkeeper.Name]string{}, kept: nothingKept{},
	}
}

// end keeps the trial or throws it away, and unlocks the base.
func (t *trial) end(keep bool) { t.session.end(keep, t.after) }

// apply makes the rows part of the catalog (a drop row removes its definition),
// builds the entries named in retry again, and works out what follows. An error
// is the engine's own trouble or the context's; the trial is then good for
// nothing but end(false).
func (t *trial) apply(rows []viewkeeper.Row, retry []viewkeeper.Name) error {
	fresh, err := t.read(rows, retry)
	if err != nil {
		return err
	}
	moved := t.replace(rows, fresh)
	t.wire(fresh, moved)
	t.order()
	for n := range t.wired {
		t.schedule(n, true)
	}
	for n := range t.cycles {
		t.schedule(n, false)
	}
	for _, n := range names(t.after.cyclic) { // those that may have got out of theirs
		t.schedule(n, false)
	}
	for _, n := range retry {
		if t.after.get(n) != nil {
			t.schedule(n, true)
		}
	}
	return t.settle()
}

// settle evaluates what is scheduled, rank by rank, until nothing follows any more.
func (t *trial) settle() error {
	for t.queue.Len() > 0 {
		if err := t.evaluate(t.nextRank()); err != nil {
			return err
		}
	}
	return nil
}

// refuse breaks the definitions that the applier did not take, and works out what
// follows. It reports whether any of them built until now: otherwise the applier
// refuses something that it was not given, and the trial can't help that.
func (t *trial) refuse(refused []RefusedApply) (bool, error) {
	news := false
	for _, r := range refused {
		if e := t.after.get(r.Name); e != nil && e.ok() {
			news = true
			t.refused[r.Name] = r.Reason
			t.schedule(r.Name, false)
		}
	}
	return news, t.settle()
}

// read makes the sources of all texts that are new, with one Parse call.
func (t *trial) read(rows []viewkeeper.Row, retry []viewkeeper.Name) (map[viewkeeper.Name]*source, error) {
	var texts []viewkeeper.Row
	changed := map[viewkeeper.Name]bool{}
	for _, row := range rows {
		if old := t.after.get(row.Name); row.Live() && (old == nil || !sameText(old.row, row)) {
			texts = append(texts, row)
			changed[row.Name] = true
		}
	}
	for _, n := range retry {
		e := t.after.get(n)
		if e != nil && !changed[n] && e.source.err != nil && engineLost(e.source.err.code) {
			texts = append(texts, e.row)
		}
	}
	sources, recalled := make([]*source, len(texts)), make([]bool, len(texts))
	onAllCores(len(texts), func(i int) {
		sources[i] = readSource(texts[i])
		recalled[i] = t.recall(sources[i])
	})
	fresh := make(map[viewkeeper.Name]*source, len(texts))
	var queries []Query
	var ask []*source
	for i, s := range sources {
		fresh[texts[i].Name] = s
		if !recalled[i] {
			ask = append(ask, s)
			queries = append(queries, s.queries()...)
		}
	}
	if len(queries) == 0 {
		return fresh, nil
	}
	parsed, err := t.parse(queries)
	if err != nil {
		return nil, err
	}
	for _, s := range ask {
		n := len(s.queries())
		s.finish(t.base, parsed[:n])
		parsed = parsed[n:]
	}
	return fresh, nil
}

// onAllCores calls f with each number below n, many at a time when they are many, and
// returns when all calls have.
func onAllCores(n int, f func(i int)) {
	const enough = 64 // for the start of a goroutine not to count
	workers := min(runtime.GOMAXPROCS(0), n/enough)
	if workers < 2 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				from := int(next.Add(enough)) - enough
				if from >= n {
					return
				}
				for i := from; i < min(from+enough, n); i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}

func sameText(a, b viewkeeper.Row) bool {
	return a.Definition.SQL == b.Definition.SQL && a.Definition.Kind == b.Definition.Kind
}

func engineLost(c viewkeeper.Code) bool {
	return c == viewkeeper.CodeEngineKilled || c == viewkeeper.CodeEngineTimeout
}

// replace puts the changes into the graph and gives the names that came or went.
func (t *trial) replace(rows []viewkeeper.Row, fresh map[viewkeeper.Name]*source) (moved []viewkeeper.Name) {
	for _, row := range rows {
		old := t.after.get(row.Name)
		switch {
		case !row.Live() && old == nil:
			continue
		case !row.Live():
			t.after.remove(row.Name)
			t.gone[row.Name] = true
			moved = append(moved, row.Name)
			for _, st := range old.stubs() {
				t.stub(st.Name, nil)
			}
		default:
			e := &entry{row: row, rowHash: hashRow(row)}
			if s := fresh[row.Name]; s != nil {
				e.source = s
			} else { // version or comment only: all that was worked out still holds
				same := *old
				e = &same
				e.row, e.rowHash = row, hashRow(row)
			}
			t.after.put(e)
			if old == nil {
				moved = append(moved, row.Name)
			}
		}
		t.touched[row.Name] = true
	}
	for name, s := range fresh { // retried rows, which are not among the changes
		if e := t.after.get(name); e.source != s {
			again := &entry{row: e.row, rowHash: e.rowHash, source: s}
			t.after.put(again)
		}
	}
	return moved
}

// wire resolves the references of the new texts, and those of the old ones that
// mention a name that came or went.
func (t *trial) wire(fresh map[viewkeeper.Name]*source, moved []viewkeeper.Name) {
	again := map[viewkeeper.Name]*entry{}
	for n := range fresh {
		again[n] = t.after.get(n)
	}
	for _, n := range moved {
		t.after.mentioners(n, func(e *entry) bool {
			again[e.name()] = e
			return true
		})
	}
	for n, e := range again {
		refs := t.after.resolve(t.base, e.source)
		isNew := fresh[n] != nil
		if !isNew && slices.Equal(refs, e.refs) {
			continue
		}
		if !isNew {
			for i := range refs {
				if from, to := e.refs[i].name, refs[i].name; from != to {
					t.captures = append(t.captures, capture{n, i, from, to})
				}
			}
		}
		w := *e
		w.refs = refs
		w.planned = nil
		t.after.put(&w)
		t.wired[n] = true
	}
	slices.SortFunc(t.captures, func(a, b capture) int {
		if c := a.reader.Compare(b.reader); c != 0 {
			return c
		}
		return a.ref - b.ref
	})
}

// resolve finds what each reference stands for. A base relation hides a
// definition of its name.
func (g *graph) resolve(base *Base, s *source) []resolved {
	refs := make([]resolved, len(s.refs))
	for i := range s.refs {
		for _, c := range s.refs[i].candidates {
			if _, ok := base.relations[c]; ok {
				refs[i] = resolved{name: c, base: true}
				break
			}
			if g.get(c) != nil {
				refs[i] = resolved{name: c}
				break
			}
		}
	}
	return refs
}

// last is what readers know of an entry: of this trial's latest evaluation, else
// of before.
func (t *trial) last(name viewkeeper.Name) *entry {
	if e, ok := t.seen[name]; ok {
		return e
	}
	return t.before.get(name)
}

// rank is the newest known rank of a definition.
func (t *trial) rank(name viewkeeper.Name) int {
	if r, ok := t.ranks[name]; ok {
		return r
	}
	if e := t.after.get(name); e != nil {
		return e.metrics.rank
	}
	return 0
}

// above is the rank that an entry has by what it reads.
func (t *trial) above(e *entry) int {
	if t.cycles[e.name()] != nil {
		return rankCyclic
	}
	rank := 0
	e.reads(func(_ int, target viewkeeper.Name) { rank = max(rank, t.rank(target)) })
	return rank + 1
}

// schedule puts an entry on the queue.
func (t *trial) schedule(name viewkeeper.Name, plan bool) {
	if k := t.tasks[name]; k != nil {
		k.plan = k.plan || plan
		return
	}
	k := &task{name: name, plan: plan, rank: t.above(t.after.get(name))}
	t.tasks[name] = k
	t.ranks[name] = k.rank
	heap.Push(&t.queue, k)
}

// nextRank takes the tasks of the lowest rank off the queue. A rank may have
// grown since the task was queued; then it goes back.
func (t *trial) nextRank() []*task {
	var level []*task
	for t.queue.Len() > 0 && (len(level) == 0 || t.queue[0].rank == level[0].rank) {
		k := heap.Pop(&t.queue).(*task)
		if r := t.above(t.after.get(k.name)); r > k.rank {
			k.rank = r
			t.ranks[k.name] = r
			heap.Push(&t.queue, k)
			continue
		}
		level = append(level, k)
		delete(t.tasks, k.name)
	}
	return level
}

// ranked is a heap of tasks, lowest rank first, by name within one.
type ranked []*task

func (q ranked) Len() int { return len(q) }
func (q ranked) Less(i, j int) bool {
	if q[i].rank != q[j].rank {
		return q[i].rank < q[j].rank
	}
	return q[i].name.Compare(q[j].name) < 0
}
func (q ranked) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *ranked) Push(x any)   { *q = append(*q, x.(*task)) }
func (q *ranked) Pop() any {
	old := *q
	k := old[len(old)-1]
	*q = old[:len(old)-1]
	return k
}
