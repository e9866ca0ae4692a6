package history

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// perfect is a catalog that does everything right, at once: what clients see of it
// makes a history without a finding, which tests then spoil.
type perfect struct {
	h     History
	now   catalog
	clock Time
	first map[string]Told // by id
	nodes map[string]int64
}

func newPerfect() *perfect {
	return &perfect{now: catalog{}, first: map[string]Told{}, nodes: map[string]int64{"n1": 0, "n2": 0}}
}

func (p *perfect) tick() Time { p.clock += Time(time.Millisecond); return p.clock }

// send sends a statement, and gives the index of its Op.
func (p *perfect) send(s Statement) int {
	op := Op{Door: "http", Statement: s, Call: p.tick(), Tries: 1, Outcome: Decided, Offset: int64(len(p.h.Log))}
	r := Record{Key: s.RecordKey(), ID: s.ID, SQL: s.SQL(), Tombstone: s.Tombstone, Expect: s.Expect}
	if s.ID == "" {
		r.ID = fmt.Sprint("topic:", len(p.h.Log))
	}
	p.h.Log = append(p.h.Log, r)
	if told, again := p.first[r.ID]; again {
		op.Told, op.Again, op.Return = &told, true, p.tick()
		p.h.Ops = append(p.h.Ops, op)
		return len(p.h.Ops) - 1
	}
	version := int64(len(p.h.Log))
	v, after := p.now.decide(s, version)
	d := viewkeeper.Decision{StatementID: r.ID, Version: viewkeeper.Version(version), Verdict: viewkeeper.Verdict(v.verdict), Epoch: 1}
	if v.codes != nil {
		d.Code = viewkeeper.Code(v.codes[0])
	}
	for n := range maps.Keys(p.now) {
		if _, there := after[n]; !there {
			d.Rows = append(d.Rows, viewkeeper.RowJSON{Name: viewkeeper.MakeName("", n), Dropped: true})
		}
	}
	for n, x := range after {
		if x.Version == version {
			d.Rows = append(d.Rows, viewkeeper.RowJSON{Name: viewkeeper.MakeName("", n)})
		}
	}
	told := Tell(d)
	p.h.Topic = append(p.h.Topic, told)
	p.first[r.ID] = told
	p.now = after
	op.Told, op.Return = &told, p.tick()
	if told.Verdict != "refused" {
		op.Reached = []string{"n1"}
	}
	p.h.Ops = append(p.h.Ops, op)
	for n := range p.nodes {
		p.nodes[n] = version
	}
	return len(p.h.Ops) - 1
}

func (p *perfect) read(node, name string) {
	q := Query{Node: node, Min: p.nodes[node], Call: p.tick(), Version: p.nodes[node], Name: name, Row: p.now.row(name)}
	if _, there := p.now[name]; !there && name != "" {
		q.Absent = true
	}
	if name == "" {
		q.Listing = p.now.listing()
	}
	q.Return = p.tick()
	p.h.Queries = append(p.h.Queries, q)
}

func (p *perfect) sample(node string) {
	p.h.Samples = append(p.h.Samples, p.status(node))
}

func (p *perfect) status(node string) Sample {
	return Sample{Node: node, Call: p.tick(), Return: p.tick(), Version: p.nodes[node], Digest: fmt.Sprint("d", p.nodes[node]), Ready: true}
}

// end fills in what is gathered when all is over.
func (p *perfect) end() *History {
	p.h.Replay = slices.Clone(p.h.Topic)
	for _, n := range []string{"n1", "n2"} {
		p.h.Nodes = append(p.h.Nodes, Node{Name: n, Sample: p.status(n), Listing: p.now.listing(), History: slices.Clone(p.h.Topic)})
		for id, t := range p.first {
			p.h.Asked = append(p.h.Asked, Asked{Node: n, ID: id, Told: &t})
		}
	}
	return &p.h
}

func view(kind, name string, n int64, reads ...string) Statement {
	d := Def{N: n, X: n%2 == 0}
	for _, r := range reads {
		d.Reads = append(d.Reads, Read{Name: r})
	}
	return Statement{ID: fmt.Sprint("id-", n), Changes: []Change{{Kind: kind, Name: name, Def: d}}}
}

func about(id, kind, name, to string) Statement {
	return Statement{ID: id, Changes: []Change{{Kind: kind, Name: name, To: to, Text: id}}}
}

// story is a history with some of everything, and no finding.
func story() *History {
	p := newPerfect()
	p.send(view(Create, "a", 1))
	p.send(view(Create, "b", 2, "a"))
	p.sample("n1")
	p.sample("n2")
	p.send(view(Create, "a", 3))            // EXISTS
	p.send(view(Replace, "a", 4))           // accepted
	p.send(about("d1", Drop, "a", ""))      // BREAKS_DEPENDENTS
	p.read("n1", "b")                       // [2 2 4]
	p.send(about("r1", Rename, "a", "c"))   // b now reads c
	p.read("n2", "")                        //
	p.send(view(Create, "d", 5, "nowhere")) // BIND
	p.send(view(Create, "a", 6))            // the name is free again
	p.sample("n1")
	p.sample("n2")
	stale := int64(1)
	s := view(Replace, "a", 7)
	s.Expect = &stale
	p.send(s) // STALE_VERSION
	p.send(Statement{ID: "set", Set: true, Changes: []Change{
		{Kind: Create, Name: "e", Def: Def{N: 8}}, {Kind: Drop, Name: "a"}}})
	p.send(view(Create, "b", 2, "a")) // the id again: no decision of its own
	p.send(about("c1", Comment, "e", ""))
	p.send(about("cascade", Cascade, "c", "")) // takes b with it
	p.read("n1", "e")
	p.read("n2", "")
	p.sample("n1")
	return p.end()
}

func rules(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Rule)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func wantNone(t *testing.T, h *History) {
	t.Helper()
	for _, f := range h.Check(time.Minute) {
		t.Error(f)
	}
}
