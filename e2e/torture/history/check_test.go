package history

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var kept = flag.String("history", "", "a history that a run has kept, for TestKept")

// TestKept checks a history that a failed run has kept; without -history a good one, kept
// here as a run does.
func TestKept(t *testing.T) {
	path := *kept
	if path == "" {
		path = filepath.Join(t.TempDir(), "history.jsonl")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(story().Write(f), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := ReadFrom(f)
	if err != nil {
		t.Fatal(err)
	}
	if *kept == "" && len(h.Topic) != len(story().Topic) {
		t.Errorf("%d decisions were read, %d were kept", len(h.Topic), len(story().Topic))
	}
	wantNone(t, h)
}

func TestAGoodHistoryHasNoFinding(t *testing.T) {
	h := story()
	wantNone(t, h)
	verdicts := ""
	for _, d := range h.Topic {
		verdicts += strings.TrimSpace(d.Verdict+" "+d.Code) + "; "
	}
	// The story is what it says.
	want := "accepted; accepted; refused EXISTS; accepted; refused BREAKS_DEPENDENTS; accepted; refused BIND; accepted; " +
		"refused STALE_VERSION; accepted; accepted; accepted; "
	if verdicts != want {
		t.Errorf("verdicts %s\nwant     %s", verdicts, want)
	}
}

// told gives the topic's and every other copy of a decision to f.
func (h *History) told(version int64, f func(*Told)) {
	all := []*[]Told{&h.Topic, &h.Replay}
	for i := range h.Nodes {
		all = append(all, &h.Nodes[i].History)
	}
	for _, list := range all {
		*list = slices.Clone(*list)
		for i := range *list {
			if (*list)[i].Version == version {
				f(&(*list)[i])
			}
		}
	}
	for i := range h.Ops {
		if h.Ops[i].Told != nil && h.Ops[i].Told.Version == version {
			f(h.Ops[i].Told)
		}
	}
	for i := range h.Asked {
		if h.Asked[i].Told.Version == version {
			f(h.Asked[i].Told)
		}
	}
}

// TestBadHistoriesAreFound spoils the good history, one promise at a time.
func TestBadHistoriesAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  string
		spoil func(*History)
	}{
		{"an acked statement is not in the log", "lost", func(h *History) {
			h.Log = h.Log[:len(h.Log)-1]
		}},
		{"a statement that was told decided has no decision", "lost", func(h *History) {
			h.Topic = h.Topic[:len(h.Topic)-1]
		}},
		{"a node has never heard of a decided id", "lost", func(h *History) { h.Asked[0].Told = nil }},
		{"a statement that nobody wrote is in the log", "not written", func(h *History) {
			h.Ops[0].Outcome, h.Ops[0].Told, h.Ops[0].Reached, h.Ops[0].Offset = NotWritten, nil, nil, -1
		}},
		{"a record has no decision", "undecided", func(h *History) { h.Topic = slices.Delete(h.Topic, 3, 4) }},
		{"one record is decided in two ways", "twice", func(h *History) {
			other := h.Topic[2]
			other.Verdict, other.Hash, other.Epoch = "accepted", "other", 2
			h.Topic = append(h.Topic, other)
		}},
		{"the repetition of an id is decided", "twice", func(h *History) {
			again := h.Topic[1]
			again.Version = 11
			h.Topic = append(h.Topic, again)
		}},
		{"a client was told another decision than the topic has", "twice", func(h *History) {
			told := *h.Ops[4].Told
			told.Verdict, told.Hash = "accepted", "other"
			h.Ops[4].Told = &told
		}},
		{"the id that is sent again gets another answer", "twice", func(h *History) {
			for i := range h.Ops {
				if h.Ops[i].Again {
					h.Ops[i].Told = h.Ops[0].Told
					h.Ops[i].Statement.ID = h.Ops[0].Told.ID
					h.Ops[i].Told = &Told{ID: "id-1", Version: 2, Verdict: "accepted", Hash: h.Topic[1].Hash}
				}
			}
		}},
		{"a later statement has the lower version", "order", func(h *History) {
			// The third was answered before the fourth was sent; their records lie the other way round.
			h.Ops[2].Call, h.Ops[3].Call = h.Ops[3].Call, h.Ops[2].Call
			h.Ops[2].Return, h.Ops[3].Return = h.Ops[3].Return, h.Ops[2].Return
		}},
		{"a decision is about another record", "order", func(h *History) {
			h.Log[4].ID, h.Log[5].ID = h.Log[5].ID, h.Log[4].ID
		}},
		{"a decision without a record", "order", func(h *History) {
			extra := h.Topic[0]
			extra.Version, extra.ID = 99, "nobody"
			h.Topic = append(h.Topic, extra)
		}},
		{"a drop of what others read is accepted", "law", func(h *History) {
			h.told(5, func(d *Told) { d.Verdict, d.Code = "accepted", "" })
		}},
		{"a statement is refused for the wrong reason", "law", func(h *History) {
			h.told(3, func(d *Told) { d.Code = "NOT_FOUND" })
		}},
		{"the replay decides otherwise", "replay", func(h *History) { h.Replay[3].Law = "other" }},
		{"the replay lacks a decision", "replay", func(h *History) { h.Replay = h.Replay[1:] }},
		{"a node shows another decision", "agree", func(h *History) { h.Nodes[1].History[2].Hash = "other" }},
		{"a node lacks a decision", "agree", func(h *History) { h.Nodes[1].History = slices.Delete(h.Nodes[1].History, 2, 3) }},
		{"a node shows them in another order", "agree", func(h *History) {
			x := h.Nodes[0].History
			x[2], x[3] = x[3], x[2]
		}},
		{"a name was created twice", "linear", func(h *History) {
			h.told(3, func(d *Told) { d.Verdict, d.Code, d.Rows = "accepted", "", []Row{{Name: "a"}} })
		}},
		{"an expected version was not there and counted all the same", "linear", func(h *History) {
			h.told(9, func(d *Told) { d.Verdict, d.Code, d.Rows = "accepted", "", []Row{{Name: "a"}} })
		}},
		{"an accepted statement left no trace", "linear", func(h *History) {
			// The create of version 1 said accepted, and yet the name was not there for the replace with expect.
			one := int64(0)
			h.Ops[3].Statement.Expect = &one
		}},
		{"a definition does not build on a node", "broken", func(h *History) { h.Samples[1].Broken = 1 }},
		{"a definition does not build at the end", "broken", func(h *History) { h.Nodes[0].Failures = []string{"b"} }},
		{"two digests at one version", "digest", func(h *History) { h.Samples[1].Digest = "other" }},
		{"a node stays behind", "converged", func(h *History) { h.Nodes[1].Sample.Version-- }},
		{"nodes end with two digests", "converged", func(h *History) { h.Nodes[1].Sample.Digest = "other" }},
		{"a node ends with other definitions", "converged", func(h *History) { h.Nodes[1].Listing[0].Version-- }},
		{"a read sees less than it asked for", "stale read", func(h *History) { h.Queries[0].Min++ }},
		{"a read sees less than the node said that it has", "stale read", func(h *History) {
			for i := range h.Ops {
				if i >= 3 && h.Ops[i].Told.Verdict == "accepted" {
					h.Ops[i].Reached = []string{"n2"}
				}
			}
			h.Queries[1].Node, h.Queries[1].Version, h.Queries[1].Min = "n2", 4, 0
		}},
		{"a read of a value of another version", "wrong read", func(h *History) { h.Queries[0].Row[0] = 1 }},
		{"a read of two versions at once", "wrong read", func(h *History) { h.Queries[0].Row[2] = 1 }},
		{"a listing without a definition", "wrong read", func(h *History) { h.Queries[1].Listing = h.Queries[1].Listing[1:] }},
		{"a definition that is there all the time is not found", "wrong read", func(h *History) {
			h.Queries[0].Absent, h.Queries[0].Row = true, nil
		}},
		{"a node goes back", "backwards", func(h *History) {
			h.Samples[3].Version, h.Samples[3].Digest = 1, "d1" // n2, which had version 2 before
		}},
		{"a node that waits for Kafka at its start goes back over one", "backwards", func(h *History) {
			h.Samples[3].Version, h.Samples[3].Digest = 1, "d1"
			h.Starts = []Start{{Node: "n2", At: h.Samples[3].Call}}
		}},
		{"a process ended by itself", "exited", func(h *History) { h.Exits = []string{"n1"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := story()
			c.spoil(h)
			findings := h.Check(time.Minute)
			if !slices.Contains(rules(findings), c.rule) {
				t.Errorf("%v, and nothing of %q", findings, c.rule)
			}
		})
	}
}

// TestANodeMayStartFromItsCopy, which may be behind what it had.
func TestANodeMayStartFromItsCopy(t *testing.T) {
	h := story()
	h.Samples[3].Version, h.Samples[3].Digest = 1, "d1"
	h.Starts = []Start{{Node: "n2", At: h.Samples[3].Call, Stale: true}}
	wantNone(t, h)
}

// TestUnknownOutcomes: what nobody answered counts from when anybody saw it, or not at all.
func TestUnknownOutcomes(t *testing.T) {
	p := newPerfect()
	i := p.send(view(Create, "a", 1))
	p.h.Ops[i].Outcome, p.h.Ops[i].Told, p.h.Ops[i].Reached, p.h.Ops[i].Offset = Unknown, nil, nil, -1
	p.send(view(Create, "a", 2)) // EXISTS, since the first one did happen
	p.h.Ops = append(p.h.Ops, Op{Statement: about("never", Drop, "a", ""), Call: p.tick(), Return: p.tick(), Outcome: Unknown, Offset: -1})
	p.send(view(Create, "a", 3)) // EXISTS, since the drop never did
	wantNone(t, p.end())
}

// TestKeptHistoriesAreTheSame: what is written is read back, finding by finding.
func TestKeptHistoriesAreTheSame(t *testing.T) {
	h := story()
	h.Faults = []Fault{{Kind: "kind", Target: "n1", From: 1, To: 2}}
	h.Queries[0].Row[0] = 1
	var b bytes.Buffer
	if err := h.Write(&b); err != nil {
		t.Fatal(err)
	}
	back, err := ReadFrom(&b)
	if err != nil {
		t.Fatal(err)
	}
	if want, got := h.Check(time.Minute), back.Check(time.Minute); !reflect.DeepEqual(got, want) || len(got) == 0 {
		t.Errorf("read back it has %v, before %v", got, want)
	}
	if !reflect.DeepEqual(back.Faults, h.Faults) {
		t.Errorf("faults %v", back.Faults)
	}
	var page bytes.Buffer
	if err := h.Visualize("a", time.Minute, &page); err != nil || !strings.Contains(page.String(), "<html") {
		t.Errorf("the page of a: %v", err)
	}
}

// TestRandomGoodHistories: whatever clients send to a perfect catalog, there is no
// finding; and when one verdict of it is turned around, there is one.
func TestRandomGoodHistories(t *testing.T) {
	for seed := range uint64(200) {
		h := randomStory(seed)
		if findings := h.Check(time.Minute); len(findings) > 0 {
			t.Fatalf("seed %d: %v", seed, findings)
		}
		v := int64(1 + rand.New(rand.NewPCG(seed, 1)).IntN(len(h.Log)))
		h.told(v, func(d *Told) {
			if d.Verdict == "refused" {
				d.Verdict, d.Code = "accepted", ""
			} else {
				d.Verdict, d.Code = "refused", "BIND"
			}
		})
		if !slices.Contains(rules(h.Check(time.Minute)), "law") {
			t.Fatalf("seed %d: the verdict of version %d is turned around, and not found", seed, v)
		}
	}
}

func randomStory(seed uint64) *History {
	r := rand.New(rand.NewPCG(seed, 0))
	p := newPerfect()
	names := []string{"a", "b", "c", "d"}
	name := func() string { return names[r.IntN(len(names))] }
	for n := range int64(40) {
		id := fmt.Sprint("s-", n)
		switch r.IntN(8) {
		case 0:
			p.send(about(id, Drop, name(), ""))
		case 1:
			p.send(about(id, DropIf, name(), ""))
		case 2:
			p.send(about(id, Cascade, name(), ""))
		case 3:
			if from, to := name(), name(); from != to {
				p.send(about(id, Rename, from, to))
			}
		case 4:
			p.send(about(id, Comment, name(), ""))
		case 5:
			p.send(Statement{ID: id, Set: true, Changes: []Change{
				{Kind: Replace, Name: name(), Def: Def{N: n}}, {Kind: DropIf, Name: name()}}})
		case 7:
			p.send(view(Replace, name(), 1000+n))
		default:
			p.send(view([]string{Create, Replace, IfNotExists}[r.IntN(3)], name(), 1000+n, name()))
		}
		p.read([]string{"n1", "n2"}[r.IntN(2)], []string{"", name()}[r.IntN(2)])
	}
	return p.end()
}
