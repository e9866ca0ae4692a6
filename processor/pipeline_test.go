package processor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/registry"
)

// counting is a judge that says how many statements it has judged.
type counting struct {
	judge
	judged *atomic.Int64
	each   chan struct{}
}

func (c counting) Judge(ctx context.Context, s viewkeeper.Submission) (*registry.Outcome, error) {
	out, err := c.judge.Judge(ctx, s)
	c.judged.Add(1)
	c.each <- struct{}{}
	return out, err
}

// While a batch is on its way the judge goes on, and what it has judged by then is the
// next batch: one commit row and one flight behind it for each.
func TestJudgingGoesOnWhileABatchIsWritten(t *testing.T) {
	w := newWorld(t)
	const count = 20
	var statements []viewkeeper.Submission
	for i := range count {
		s := create(fmt.Sprintf("v%d", i), i)
		s.ID = fmt.Sprint("s", i)
		statements = append(statements, s)
		w.emit(s)
	}
	var judged atomic.Int64
	each := make(chan struct{}, count)
	var commits, flights atomic.Int64
	w.start("node-1", func(p *Processor) {
		load := p.load
		p.load = func(ctx context.Context, rows []viewkeeper.Row, o registry.CatalogOptions) (judge, error) {
			j, err := load(ctx, rows, o)
			return counting{j, &judged, each}, err
		}
		withFaults(func(_ int, flight []*sarama.ProducerMessage) (int, error) {
			key, _ := flight[0].Key.Encode()
			switch {
			case isHeartbeat(flight) || judged.Load() == 0:
			case string(key) != codec.KeyCommit:
				flights.Add(1)
			case commits.Add(1) == 1:
				for range count { // the first batch waits for all to be judged
					select {
					case <-each:
					case <-w.ctx.Done():
						return 0, w.ctx.Err()
					}
				}
			}
			return 0, nil
		})(p)
	})
	w.verify(statements)
	w.settled(count)
	// A third when the last one that was judged comes into the queue just after the second
	// batch was taken from it.
	if c, f := commits.Load(), flights.Load(); c != f || c > 3 {
		t.Errorf("%d statements took %d commit rows and %d flights behind them; all but the first batch were judged before any was sent", count, c, f)
	}
}

// A statement that comes alone costs two requests: its commit row, and then all the rest.
func TestALoneStatementTakesTwoRequests(t *testing.T) {
	w := newWorld(t)
	w.start("node-1", func(p *Processor) { p.cfg.Heartbeat = time.Hour }).waitOwner()
	var mu sync.Mutex
	var requests [][]string
	w.broker.Cluster().ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.broker.Cluster().KeepControl()
		var topics []string
		for _, in := range r.(*kmsg.ProduceRequest).Topics {
			topics = append(topics, in.Topic)
		}
		slices.Sort(topics)
		mu.Lock()
		requests = append(requests, topics)
		mu.Unlock()
		return nil, nil, false
	})
	const count = 5
	for i := range count {
		s := create("a", i)
		s.ID = fmt.Sprint("s", i)
		w.emit(s)
		w.decisions(s.ID, func(all []decision) bool { return len(all) == i+1 })
	}
	mu.Lock()
	defer mu.Unlock()
	got := map[string]int{}
	for _, r := range requests {
		got[fmt.Sprint(r)]++
	}
	d, table, decisions := w.topics.Definitions(), w.topics.Table(), w.topics.Decisions()
	both := []string{table, decisions}
	slices.Sort(both)
	if len(got) != 3 || got[fmt.Sprint([]string{d})] != count || got[fmt.Sprint([]string{table})] != count || got[fmt.Sprint(both)] != count {
		t.Errorf("%d statements took the requests %v", count, got)
	}
}

// memory is a sink that keeps what it was sent last.
type memory struct {
	next int64
	last []*sarama.ProducerMessage
}

func (s *memory) close() error { return nil }

func (s *memory) send(messages []*sarama.ProducerMessage) error {
	s.last = append(s.last, messages...)
	for _, m := range messages {
		m.Offset = s.next
		s.next++
	}
	return nil
}

// batchCost is how many allocations it takes to write a statement and to read it back,
// in a catalog of n definitions.
func batchCost(t *testing.T, n int) float64 {
	t.Helper()
	named := func(i int, v viewkeeper.Version) viewkeeper.Row {
		name := viewkeeper.MakeName("", fmt.Sprintf("v%06d", i))
		return viewkeeper.Row{Name: name, Version: v, Epoch: 1, Definition: &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: "CREATE VIEW v AS SELECT 1", ID: 1}}
	}
	out := &memory{}
	f := fold.New()
	var rows []viewkeeper.Row
	add := func(r codec.Record) {
		f.Add(out.next, r)
		out.next++
	}
	add(&codec.Fence{Nonce: "00", Owner: "node-1"})
	last := &codec.Commit{Version: viewkeeper.Version(n), Epoch: 1}
	add(last)
	for i := range n {
		r := named(i, 1)
		rows = append(rows, r)
		add(codec.Row{Row: r})
	}
	gap, _ := f.NeedEnd()
	f.EndIs(gap, out.next)
	f.Take()
	m, err := newMetrics(nil, "test", newBoard(time.Now), 1)
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{
		cfg: &Config{NodeID: "node-1"}, metrics: m, board: newBoard(time.Now), now: time.Now, ctx: t.Context(), sink: out, epoch: 1,
		follower: newFollower(f, func(context.Context) (int64, error) { return 0, nil }), last: last, live: fold.NewLive(rows), ring: fold.NewRing(nil, nil),
	}
	o.follower.epoch = 1
	version := viewkeeper.Version(n)
	return testing.AllocsPerRun(20, func() {
		version++
		r := named(n/2, version)
		d := viewkeeper.Decision{StatementID: "s", Version: version, Offset: int64(version) - 1, Verdict: viewkeeper.Accepted}
		it := &item{version: version, decision: &d, message: codec.EncodeDecision(d), rows: []viewkeeper.Row{r}}
		out.last = nil
		if _, err := o.commit([]*item{it}); err != nil {
			t.Fatal(err)
		}
		for _, sent := range out.last {
			if sent.Topic != o.topics.Table() {
				continue
			}
			key, _ := sent.Key.Encode()
			value, _ := sent.Value.Encode()
			if err := o.follower.read(t.Context(), &sarama.ConsumerMessage{Key: key, Value: value, Offset: sent.Offset}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What the owner does for a statement, but for judging it, does not depend on how large
// the catalog is.
func TestTheOwnersCostDoesNotGrow(t *testing.T) {
	small, large := batchCost(t, 100), batchCost(t, 5000)
	if large > small*1.05 {
		t.Errorf("a statement takes %v allocations at 100 definitions and %v at 5,000", small, large)
	}
}
