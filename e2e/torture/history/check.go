package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Finding is one broken promise.
type Finding struct {
	Rule   string
	Detail string
}

// String gives rule and detail.
func (f Finding) String() string { return f.Rule + ": " + f.Detail }

// most is how many findings of one rule are told in full.
const most = 10

// checker holds what the rules share: what the walk along the log found out.
type checker struct {
	h        *History
	findings []Finding
	count    map[string]int

	texts map[string]Statement // what a client meant by a text
	topic map[int64]Told       // by version; the highest epoch
	first map[string]int64     // version of the first decision of an id
	state []catalog            // by version, from 0
	known bool                 // state was right up to the end
}

// Check gives all findings, at most 10 in full of each rule. budget is the time
// that the search for an order per name may take (linear.go).
func (h *History) Check(budget time.Duration) []Finding {
	c := &checker{h: h, count: map[string]int{}, texts: map[string]Statement{}, topic: map[int64]Told{}, first: map[string]int64{}, known: true}
	for _, op := range h.Ops {
		c.texts[Record{Key: op.Statement.RecordKey(), SQL: op.Statement.SQL(), Tombstone: op.Statement.Tombstone}.text()] = op.Statement
	}
	c.decisions()
	c.walk()
	c.replay()
	c.ops()
	c.realTime()
	c.nodes()
	c.asked()
	c.reads()
	c.samples()
	for _, e := range h.Exits {
		c.find("exited", "%s", e)
	}
	c.linear(budget)
	for _, rule := range slices.Sorted(mapKeys(c.count)) {
		if n := c.count[rule]; n > most {
			c.findings = append(c.findings, Finding{rule, fmt.Sprintf("and %d more", n-most)})
		}
	}
	return c.findings
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (c *checker) find(rule, format string, args ...any) {
	if c.count[rule]++; c.count[rule] <= most {
		c.findings = append(c.findings, Finding{rule, fmt.Sprintf(format, args...)})
	}
}

// decisions reads the topic: at least once each, the same each time.
func (c *checker) decisions() {
	for _, t := range c.h.Topic {
		old, again := c.topic[t.Version]
		switch {
		case again && old.Hash != t.Hash:
			c.find("twice", "version %d is decided as %q by epoch %d and as %q by epoch %d", t.Version, old.say(), old.Epoch, t.say(), t.Epoch)
		case again && old.Epoch >= t.Epoch:
			continue
		}
		c.topic[t.Version] = t
	}
}

func (t Told) say() string {
	return fmt.Sprintf("%s %s %s (id %s, version %d)", t.Verdict, t.Code, t.Message, t.ID, t.Version)
}

// byEngine reports whether the engine, and not the law, refused: a statement that
// its engine died or stalled on twice. Which ones these are depends on time.
func (t Told) byEngine() bool { return t.Code == "ENGINE_KILLED" || t.Code == "ENGINE_TIMEOUT" }

// walk decides each record of the log by the model, in order.
func (c *checker) walk() {
	type known struct{ text string }
	ids := map[string]known{}
	now := catalog{}
	c.state = []catalog{now}
	for offset, r := range c.h.Log {
		version := int64(offset) + 1
		t, decided := c.topic[version]
		want, next := verdict{}, now
		before, again := ids[r.ID]
		statement, meant := c.texts[r.text()]
		switch {
		case again && before.text == r.text():
			if decided {
				c.find("twice", "offset %d repeats the id %s with the same text, and got a decision of its own: %s", offset, r.ID, t.say())
			}
			c.state = append(c.state, now)
			continue
		case again:
			want = refused("ID_REUSED")
		case !meant:
			c.find("law", "offset %d holds a text that no client sent: %q", offset, r.SQL)
			c.state = append(c.state, now)
			continue
		default:
			ids[r.ID] = known{r.text()}
			statement.ID, statement.Key, statement.Expect = r.ID, r.Key, r.Expect
			want, next = now.decide(statement, version)
		}
		switch {
		case !decided:
			c.find("undecided", "offset %d, id %s: %q", offset, r.ID, r.SQL)
		case t.ID != r.ID:
			c.find("order", "the decision of version %d is about %s, and the record at offset %d is %s", version, t.ID, offset, r.ID)
		case t.byEngine():
			next = now
		case t.Verdict != want.verdict || t.Verdict == "refused" && !slices.Contains(want.codes, t.Code):
			c.known = false
			c.find("law", "version %d is %s, and the model says %s %v, over %s: %s", version, t.say(), want.verdict, want.codes, now.say(statement), r.SQL)
		}
		if decided && !again {
			c.first[r.ID] = version
		}
		now = next
		c.state = append(c.state, now)
	}
	for v, t := range c.topic {
		if v < 1 || v > int64(len(c.h.Log)) {
			c.find("order", "a decision for a record that is not there: %s", t.say())
		}
	}
}

// say shows the part of the catalog that a statement is about.
func (c catalog) say(s Statement) string {
	out := ""
	for _, n := range s.Names() {
		if d, ok := c[n]; ok {
			out += fmt.Sprintf("%s=%d@%d ", n, d.N, d.Version)
		} else {
			out += n + "=none "
		}
	}
	return out
}

// replay compares with what a fleet without faults decided of the same records.
func (c *checker) replay() {
	if c.h.Replay == nil {
		return
	}
	got := map[int64]Told{}
	for _, t := range c.h.Replay {
		got[t.Version] = t
	}
	for _, v := range c.versions() {
		t := c.topic[v]
		if r, ok := got[v]; !ok {
			c.find("replay", "version %d is %s, and nothing in the replay", v, t.say())
		} else if r.Law != t.Law && !t.byEngine() {
			c.find("replay", "version %d is %s, and in the replay %s", v, t.say(), r.say())
		}
		delete(got, v)
	}
	for v, r := range got {
		c.find("replay", "version %d is decided in the replay alone: %s", v, r.say())
	}
}

func (c *checker) versions() []int64 {
	all := make([]int64, 0, len(c.topic))
	for v := range c.topic {
		all = append(all, v)
	}
	slices.Sort(all)
	return all
}

// ops holds the topics to what clients were told.
func (c *checker) ops() {
	inLog := map[string]int{}
	for i, r := range c.h.Log {
		inLog[r.ID] = i + 1
	}
	for _, op := range c.h.Ops {
		id := op.Statement.ID
		who := fmt.Sprintf("client %d, %s, id %q: %q", op.Client, op.Door, id, op.Statement.SQL())
		if op.Offset >= 0 {
			if op.Offset >= int64(len(c.h.Log)) {
				c.find("lost", "acked at offset %d, where the log ends at %d; %s", op.Offset, len(c.h.Log), who)
			} else if r := c.h.Log[op.Offset]; r.SQL != op.Statement.SQL() || id != "" && r.ID != id {
				c.find("lost", "acked at offset %d, which holds %q; %s", op.Offset, r.SQL, who)
			}
		}
		if op.Outcome == NotWritten && id != "" && !op.Again && inLog[id] > 0 {
			c.find("not written", "it lies at offset %d; %s", inLog[id]-1, who)
		}
		if op.Told == nil {
			continue
		}
		t := *op.Told
		in, decided := c.topic[t.Version]
		switch {
		case !decided:
			c.find("lost", "it was told %s, and no decision of that version is on the topic; %s", t.say(), who)
		case in.Hash != t.Hash:
			c.find("twice", "it was told %s, and the topic says %s; %s", t.say(), in.say(), who)
		case id != "" && t.ID != id:
			c.find("agree", "it was told the decision of another statement: %s; %s", t.say(), who)
		case id != "" && t.Code != "ID_REUSED" && c.first[id] != t.Version:
			c.find("twice", "it was told %s, and the id was decided at version %d; %s", t.say(), c.first[id], who)
		}
	}
}

// realTime: what was answered before another statement was sent lies before it.
func (c *checker) realTime() {
	type span struct {
		call, ret Time
		version   int64
	}
	var spans []span
	for _, op := range c.h.Ops {
		switch {
		case op.Again:
		case op.Told != nil:
			spans = append(spans, span{op.Call, op.Return, op.Told.Version})
		case op.Offset >= 0 && op.Tries == 1:
			spans = append(spans, span{op.Call, op.Return, op.Offset + 1})
		}
	}
	byCall, byReturn := slices.Clone(spans), spans
	slices.SortFunc(byCall, func(a, b span) int { return cmp.Compare(a.call, b.call) })
	slices.SortFunc(byReturn, func(a, b span) int { return cmp.Compare(a.ret, b.ret) })
	done, highest := 0, span{}
	for _, s := range byCall {
		for done < len(byReturn) && byReturn[done].ret < s.call {
			if byReturn[done].version > highest.version {
				highest = byReturn[done]
			}
			done++
		}
		if s.version <= highest.version {
			c.find("order", "version %d was sent at %v, after version %d was answered at %v", s.version, time.Duration(s.call), highest.version, time.Duration(highest.ret))
		}
	}
}

// nodes compares what each node had at the end with the topics and the model.
func (c *checker) nodes() {
	last := int64(len(c.h.Log))
	for _, n := range c.h.Nodes {
		for _, f := range n.Failures {
			c.find("broken", "%s at the end: %s", n.Name, f)
		}
		if n.Sample.Version != last {
			c.find("converged", "%s is at version %d, and the log ends at %d", n.Name, n.Sample.Version, last)
		}
		if first := c.h.Nodes[0]; n.Sample.Digest != first.Sample.Digest || n.Sample.BuildDigest != first.Sample.BuildDigest {
			c.find("converged", "%s has digest %s, build %s; %s has %s, %s", n.Name, n.Sample.Digest, n.Sample.BuildDigest, first.Name, first.Sample.Digest, first.Sample.BuildDigest)
		}
		if want := c.state[len(c.state)-1].listing(); c.known && !slices.Equal(n.Listing, want) {
			c.find("converged", "%s lists %v, and the decisions make it %v", n.Name, n.Listing, want)
		}
		at := int64(0)
		seen := map[int64]bool{}
		for _, t := range n.History {
			if t.Version <= at {
				c.find("agree", "%s shows version %d after version %d", n.Name, t.Version, at)
			}
			at, seen[t.Version] = t.Version, true
			if in, ok := c.topic[t.Version]; !ok || in.Hash != t.Hash {
				c.find("agree", "%s shows %s, and the topic says %s", n.Name, t.say(), in.say())
			}
		}
		for _, v := range c.versions() {
			if !seen[v] {
				c.find("agree", "%s does not show version %d: %s", n.Name, v, c.topic[v].say())
			}
		}
	}
}

// asked: an id has one decision, for ever and everywhere.
func (c *checker) asked() {
	for _, a := range c.h.Asked {
		first, decided := c.first[a.ID]
		switch {
		case a.Told == nil && decided:
			c.find("lost", "%s knows nothing of %s, which was decided: %s", a.Node, a.ID, c.topic[first].say())
		case a.Told != nil && !decided:
			c.find("lost", "%s has a decision of %s, which is not in the log: %s", a.Node, a.ID, a.Told.say())
		case a.Told != nil && (a.Told.Version != first || a.Told.Hash != c.topic[first].Hash):
			c.find("twice", "%s says of %s: %s; it was decided as %s", a.Node, a.ID, a.Told.say(), c.topic[first].say())
		}
	}
}
