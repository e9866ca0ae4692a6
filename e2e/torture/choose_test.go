package torture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/viewkeeper/viewkeeper/e2e/torture/history"
)

// layers are the workload's names. A definition reads only from layers before its
// own, so that plans stay small however long the run is; a rename stays in its layer.
var layers = [4][]string{
	{"a0", "a1", "a2", "a3", "a4", "a5"},
	{"b0", "b1", "b2", "b3", "b4"},
	{"c0", "c1", "c2", "c3"},
	{"d0", "d1", "d2"},
}

// choice is what a client does next. It follows from seed, client and number alone,
// never from time or from what happened, so that a seed repeats it.
type choice struct {
	n         int64 // identifies the statement in all the definitions that it writes
	kind      string
	statement history.Statement
	kafka     bool
	withID    bool
	expect    string // "", "none" (must not exist), "known" (the version that clients know)
	wait      string
	node      int           // where to try first
	tries     int           // at most
	earlier   int           // the statement that is sent again, by number
	think     time.Duration // afterwards
}

// The kinds of a choice that are not those of a change.
const (
	plain      = "plain"
	repeatID   = "same id, same text"
	reuseID    = "same id, another text"
	repeatText = "same text, another id"
)

func random(seed uint64, client, n int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(client)<<32|uint64(n)))
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func choose(seed uint64, client, n int) choice {
	r := random(seed, client, n)
	c := choice{
		n: int64(client)*1_000_000 + int64(n), kind: plain, kafka: client%3 == 2, withID: r.IntN(5) > 0,
		wait: pick(r, []string{"decided", "node", "node", "fleet"}), node: r.IntN(3), tries: 1 + r.IntN(4),
		think: time.Duration(r.ExpFloat64() * float64(120*time.Millisecond)),
	}
	switch x := r.IntN(100); {
	case n > 3 && x < 3:
		c.kind = repeatID
	case n > 3 && x < 5:
		c.kind = reuseID
	case n > 3 && x < 8:
		c.kind = repeatText
	}
	c.earlier = 1 + r.IntN(max(n-1, 1))
	c.statement = statement(r, c.n)
	if one := len(c.statement.Changes) == 1 && len(c.statement.Changes[0].More) == 0; one && !c.statement.Tombstone {
		switch x := r.IntN(10); {
		case x < 2:
			c.expect = "known"
		case x == 2:
			c.expect = "none"
		}
		if c.kafka && r.IntN(30) == 0 {
			c.statement.Key = pick(r, pick(r, layers[:])) // maybe another definition's
		}
	}
	if c.statement.Tombstone {
		c.kafka = true
	}
	// What was sent without an id, and got no answer, is found again by its text alone.
	if ch := c.statement.Changes; len(ch) == 0 || ch[0].Def.N == 0 {
		c.withID = true
	}
	if c.kind != plain {
		c.withID = true
	}
	return c
}

// id is the statement id that a choice's statement has when it has one.
func id(client, n int) string { return fmt.Sprintf("c%d-%d", client, n) }

func statement(r *rand.Rand, n int64) history.Statement {
	one := func(c history.Change) history.Statement { return history.Statement{Changes: []history.Change{c}} }
	layer := r.IntN(len(layers))
	name := pick(r, layers[layer])
	switch x := r.IntN(100); {
	case x < 36:
		return one(history.Change{Kind: history.Replace, Name: name, Def: definition(r, layer, name, n)})
	case x < 54:
		return one(history.Change{Kind: history.Create, Name: name, Def: definition(r, layer, name, n)})
	case x < 57:
		return one(history.Change{Kind: history.IfNotExists, Name: name, Def: definition(r, layer, name, n)})
	case x < 64:
		return one(history.Change{Kind: history.Drop, Name: name})
	case x < 66:
		return one(history.Change{Kind: history.Drop, Name: name, More: others(r, name, 1+r.IntN(2))})
	case x < 68:
		return one(history.Change{Kind: history.DropIf, Name: name})
	case x < 70:
		return one(history.Change{Kind: history.Cascade, Name: name})
	case x < 72:
		return history.Statement{Tombstone: true, Changes: []history.Change{{Kind: history.DropIf, Name: name}}}
	case x < 78:
		to := pick(r, layers[layer])
		if to == name {
			to = layers[layer][(slices.Index(layers[layer], name)+1)%len(layers[layer])]
		}
		return one(history.Change{Kind: history.Rename, Name: name, To: to})
	case x < 85:
		return one(history.Change{Kind: history.Comment, Name: name, Text: fmt.Sprint("by ", n)})
	case x < 87:
		return history.Statement{Bad: fmt.Sprintf("CREATE VIEV %s AS SELECT %d", name, n)}
	}
	set := history.Statement{Set: true}
	for i := range 2 + r.IntN(3) {
		layer := r.IntN(len(layers))
		name := pick(r, layers[layer])
		switch x := r.IntN(10); {
		case x < 7:
			set.Changes = append(set.Changes, history.Change{Kind: history.Replace, Name: name, Def: definition(r, layer, name, n)})
		case x < 8:
			set.Changes = append(set.Changes, history.Change{Kind: history.DropIf, Name: name})
		case x < 9:
			set.Changes = append(set.Changes, history.Change{Kind: history.Comment, Name: name, Text: fmt.Sprint("by ", n, " ", i)})
		default:
			set.Changes = append(set.Changes, history.Change{Kind: history.Create, Name: name, Def: definition(r, layer, name, n)})
		}
	}
	return set
}

func others(r *rand.Rand, but string, n int) []string {
	var out []string
	for len(out) < n {
		if name := pick(r, pick(r, layers[:])); name != but && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// definition reads up to two definitions of earlier layers, and sometimes itself, which is refused.
func definition(r *rand.Rand, layer int, name string, n int64) history.Def {
	d := history.Def{N: n, X: r.IntN(4) > 0}
	if r.IntN(40) == 0 {
		d.Reads = append(d.Reads, history.Read{Name: name})
		return d
	}
	if layer == 0 {
		return d
	}
	for range r.IntN(3) {
		d.Reads = append(d.Reads, history.Read{Name: pick(r, layers[r.IntN(layer)]), X: r.IntN(3) == 0})
	}
	return d
}
