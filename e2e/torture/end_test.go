package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/e2e/torture/history"
)

// end gathers what is there when all is healed and nobody works any more: what lies
// in Kafka, what each node has, a fresh one too, what becomes of ids that are asked
// for or sent again, and what a fleet without faults makes of the same log.
func (r *run) end(ctx context.Context, m *nemesis) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	fresh := r.f.Serve("fresh", "node")
	r.address["fresh"] = fresh.HTTP
	nodes := append(slices.Clone(r.nodes), "fresh")
	r.sendAgain(ctx)
	// The last record is decided like any other: whoever has its version has all.
	status, last, err := r.post(ctx, "n1", history.Statement{ID: "the-last", Bad: "that is all"}, "decided")
	if err != nil || status != http.StatusUnprocessableEntity {
		r.t.Errorf("the last statement: status %d, %v %s", status, err, last.Detail)
	}
	told := history.Tell(last.Decision)
	r.h.Ops = append(r.h.Ops, history.Op{Door: "http", Statement: history.Statement{ID: "the-last", Bad: "that is all"}, Offset: -1, Call: r.now(), Return: r.now(), Outcome: history.Decided, Told: &told})

	id, err := topicID(ctx, m.admin, r.f.Topic("definitions"))
	if err != nil {
		r.t.Fatal(err)
	}
	log, err := readAll(ctx, r.seeds, r.f.Topic("definitions"))
	if err != nil {
		r.t.Fatal(err)
	}
	for i, rec := range log {
		if rec.Offset != int64(i) {
			r.t.Fatalf("the record after offset %d of the definitions topic is %d", i-1, rec.Offset)
		}
		x, err := asRecord(rec, id)
		if err != nil {
			r.t.Fatal(err)
		}
		r.h.Log = append(r.h.Log, x)
	}
	r.h.Topic = r.decisions(ctx, r.f)
	for _, n := range nodes {
		r.h.Nodes = append(r.h.Nodes, r.node(ctx, n, int64(len(log))))
	}
	r.ask(ctx, nodes)
	for _, p := range r.f.Procs {
		p.Stop()
	}
	r.replay(ctx, m, log)
}

func (r *run) decisions(ctx context.Context, f *fleet.Fleet) []history.Told {
	records, err := readAll(ctx, r.seeds, f.Topic("decisions"))
	if err != nil {
		r.t.Fatal(err)
	}
	var out []history.Told
	for _, rec := range records {
		told, err := decision(rec)
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, told)
	}
	return out
}

// node is all that a node has, once it has the log's end.
func (r *run) node(ctx context.Context, name string, end int64) history.Node {
	n := history.Node{Name: name}
	get := func(path string, into any) []byte {
		resp, text, err := r.http(ctx, http.MethodGet, name, path, nil, nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			r.t.Fatalf("%s%s: %v %s", name, path, err, text)
		}
		if into != nil {
			if err := json.Unmarshal(text, into); err != nil {
				r.t.Fatalf("%s%s: %v: %s", name, path, err, text)
			}
		}
		return text
	}
	fleet.Eventually(r.t, name+" reaches the end", func() (err error) {
		if n.Sample, err = r.sample(ctx, name); err == nil && (n.Sample.Version < end || !n.Sample.Ready) {
			err = fmt.Errorf("version %d of %d, ready: %v", n.Sample.Version, end, n.Sample.Ready)
		}
		return err
	})
	var failures struct {
		Failures []struct {
			Name   viewkeeper.Name
			Reason string
		}
	}
	get("/v1/failures", &failures)
	for _, f := range failures.Failures {
		n.Failures = append(n.Failures, f.Name.String()+": "+f.Reason)
	}
	var err error
	if n.Listing, err = listing(get("/v1/definitions", nil)); err != nil {
		r.t.Fatal(err)
	}
	fleet.Eventually(r.t, name+" has all decisions", func() error {
		n.History = nil
		var page struct {
			Decisions    []viewkeeper.Decision
			Next         *viewkeeper.Version
			CompleteFrom viewkeeper.Version `json:"complete_from"`
		}
		for since := viewkeeper.Version(0); ; since = *page.Next {
			page.Next = nil
			get(fmt.Sprintf("/v1/decisions?limit=10000&since=%d", since), &page)
			for _, d := range page.Decisions {
				n.History = append(n.History, history.Tell(d))
			}
			if page.Next == nil {
				break
			}
		}
		if page.CompleteFrom > 1 || len(n.History) == 0 || n.History[len(n.History)-1].Version < end {
			return fmt.Errorf("complete from %d, %d decisions", page.CompleteFrom, len(n.History))
		}
		return nil
	})
	for i := range n.History {
		n.History[i].Rows = nil
	}
	return n
}

// sendAgain sends statements again, with their ids: some that were decided, and those
// whose outcome nobody knows, so that each ends as decided.
func (r *run) sendAgain(ctx context.Context) {
	decided := 0
	for i, op := range slices.Clone(r.h.Ops) {
		known := op.Outcome == history.Decided
		if op.Statement.ID == "" || op.Again || op.Statement.Tombstone || op.Outcome == history.NotWritten {
			continue
		}
		if known {
			if decided++; decided%(1+len(r.h.Ops)/40) != 0 {
				continue
			}
		}
		again := history.Op{Client: op.Client, Door: "http", Statement: op.Statement, Offset: -1, Call: r.now(), Tries: 1, Outcome: history.Unknown, Again: true}
		status, a, err := r.post(ctx, r.nodes[i%len(r.nodes)], op.Statement, "node")
		if err != nil || status != http.StatusOK && status != http.StatusUnprocessableEntity {
			r.t.Errorf("%s sent again when all was healed: status %d %v %s", op.Statement.ID, status, err, a.Detail)
		} else {
			told := history.Tell(a.Decision)
			again.Outcome, again.Told, again.Reached = history.Decided, &told, a.Reached
		}
		again.Return = r.now()
		r.h.Ops = append(r.h.Ops, again)
	}
}

// ask asks every node for the decisions of ids: of all whose outcome was not clear, and some of the others.
func (r *run) ask(ctx context.Context, nodes []string) {
	seen := 0
	for _, op := range r.h.Ops {
		if op.Statement.ID == "" || op.Again {
			continue
		}
		if op.Outcome == history.Decided {
			if seen++; seen%(1+len(r.h.Ops)/200) != 0 {
				continue
			}
		}
		for _, n := range nodes {
			a := history.Asked{Node: n, ID: op.Statement.ID}
			resp, text, err := r.http(ctx, http.MethodGet, n, "/v1/statements/"+op.Statement.ID, nil, nil)
			switch {
			case err != nil:
				r.t.Error(err)
				continue
			case resp.StatusCode == http.StatusOK:
				var d viewkeeper.Decision
				if err := json.Unmarshal(text, &d); err != nil {
					r.t.Error(err)
				}
				told := history.Tell(d)
				a.Told = &told
			case resp.StatusCode != http.StatusNotFound:
				r.t.Errorf("%s, asked for %s at the end: %d %s", n, op.Statement.ID, resp.StatusCode, text)
			}
			r.h.Asked = append(r.h.Asked, a)
		}
	}
}

// replay gives the same records, one for one, to another catalog, whose owner meets
// no fault. A decision follows from the log alone, so all must be the same, but for
// those that the engine and not the law refused: there a text stands in that is
// refused too.
func (r *run) replay(ctx context.Context, m *nemesis, log []*kgo.Record) {
	killed := map[string]bool{}
	for _, t := range r.h.Topic {
		if t.Code == string(viewkeeper.CodeEngineKilled) || t.Code == string(viewkeeper.CodeEngineTimeout) {
			killed[t.ID] = true
		}
	}
	f := fleet.New(r.t)
	topic := f.Topic("definitions")
	var records []*kgo.Record
	for i, rec := range log {
		c := &kgo.Record{Topic: topic, Key: rec.Key, Value: rec.Value, Headers: rec.Headers}
		if killed[r.h.Log[i].ID] {
			c.Value = []byte("refused by the engine")
		}
		records = append(records, c)
	}
	if err := m.admin.ProduceSync(ctx, records...).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
	node := f.Serve("replay", "owner,node")
	// As long as it gets on: a long run's log is judged for minutes where others work too.
	for at := viewkeeper.Version(0); at < viewkeeper.Version(len(log)); {
		fleet.Eventually(r.t, fmt.Sprintf("the replay gets on from version %d of %d", at, len(log)), func() error {
			if now := node.Status().Version; now > at {
				at = now
				return nil
			}
			return errors.New("it stands still")
		})
	}
	node.Stop() // what it said is on the topic
	r.h.Replay = r.decisions(ctx, f)
}
