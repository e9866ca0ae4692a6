package processor

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry"
)

// judge is the law as the owner uses it: *registry.Catalog.
type judge interface {
	Judge(context.Context, viewkeeper.Submission) (*registry.Outcome, error)
}

// loadJudge loads the catalog that statements are judged against.
type loadJudge func(context.Context, []viewkeeper.Row, registry.CatalogOptions) (judge, error)

// owner is this process while it owns the catalog, from its fence to its end. Three
// goroutines work in it, and pass a statement on in this order:
//
//	goka's callback  judges (handle), and puts what was decided into the queue
//	the writer       writes batches of it (write)
//	the follower     reads them back and finishes them (finish)
//
// ctx ends with the session, or with the first failure of any of the three, which is
// its cause.
type owner struct {
	cfg      *Config
	topics   kafka.Topics
	log      *slog.Logger
	metrics  *metrics
	reached  *reached
	board    *board
	troubles *troubles
	now      func() time.Time

	ctx  context.Context
	stop context.CancelCauseFunc
	wait sync.WaitGroup
	// failed tells the life of a failure.
	failed func(error)

	epoch       viewkeeper.Epoch
	versionBase viewkeeper.Version
	topicID     string // of the definitions topic
	engine      string
	baseDigest  string
	fence       *codec.Fence
	session     sarama.ConsumerGroupSession
	follower    *follower
	sink        sink
	queue       *queue
	// markers counts the markers of transactions between two offsets of the input.
	markers func(ctx context.Context, from, below int64) (int64, error)
	// sweep hands the writer what has to go from the nodes topic.
	sweep chan []*sarama.ProducerMessage
	// purge tells the writer below which offset of the table drop rows are old.
	purge chan int64

	// What follows is the callback's alone, which goka runs one at a time.

	load  loadJudge
	judge judge
	// next is the next offset to judge.
	next  int64
	known *known
	// rows is the catalog with the pending statements, for the one case in which the
	// judge's has to be made anew.
	rows map[viewkeeper.Name]viewkeeper.Row

	// What follows is the writer's alone.

	last  *codec.Commit // the last one written, or what the first one starts from
	ring  *fold.Ring
	live  *fold.Live // the definitions up to last
	wrote fold.Written

	// mu guards what is written and not yet read back.
	mu      sync.Mutex
	written []written
}

// written is a batch that the writer is done with. Its records are all acked, and the
// last one of the table lies at offset last; -1 says that it has none, and never that
// the batch failed.
type written struct {
	last  int64
	items []*item
}

// never is an offset that no follower comes to.
const never = math.MaxInt64

// fail ends the owner; only the first reason is its context's cause. The life is told
// of a failure even when the session had ended before: its producer is not to be used
// again.
func (o *owner) fail(err error) {
	o.stop(err)
	if !isEnd(err) {
		o.board.failing(err)
		o.metrics.owner.Set(0)
		o.failed(err)
	}
}

// handle deals with one record of the definitions topic. It is goka's callback; done
// tells goka that the record is dealt with.
func (o *owner) handle(m codec.Message, done func(error)) {
	it := &item{offset: m.Offset, done: done}
	if m.Offset < o.next {
		// A version that the commit row has reached is never judged again. Its offset
		// is marked in its turn, behind those before it.
		o.queue.push(o.ctx, it)
		return
	}
	if m.Offset > o.next {
		o.gap(m.Offset)
	}
	if err := o.decide(m, it); err != nil {
		o.fail(err)
		done(endOf(o.ctx))
		return
	}
	o.next = m.Offset + 1
	o.queue.push(o.ctx, it)
	o.metrics.queue.Set(float64(o.queue.size()))
}

// gap looks at the offsets between the next one to judge and one that came. The markers
// of transactions are no statements; the rest was gone before it was judged.
func (o *owner) gap(offset int64) {
	gap := offset - o.next
	markers, err := o.markers(o.ctx, o.next, offset)
	if err != nil {
		o.log.Info("whether a gap in the statements is of transaction markers is not known; it is counted as lost", "before", offset, "error", err)
	}
	if gap -= markers; gap > 0 {
		o.lost(gap, offset)
	}
}

// lost reports offsets that vanished from the input before they were judged.
func (o *owner) lost(gap, offset int64) {
	o.metrics.lost.Add(float64(gap))
	detail := fmt.Sprintf("%d offsets of topic %s before offset %d were gone before they were judged: compacted away or deleted; compare with what was sent, and send again what is missing",
		gap, o.topics.Definitions(), offset)
	// The reason is said once, however many gaps there are.
	o.log.Debug("statements lost", "count", gap, "before", offset, "topic", o.topics.Definitions())
	o.board.reason(viewkeeper.ReasonStatementsLost, detail)
}

// decide judges a statement and fills in the item. A user's mistake is a decision;
// an error is the engine's or the program's own.
func (o *owner) decide(m codec.Message, it *item) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("judging offset %d panicked: %v\n%s", m.Offset, r, debug.Stack())
		}
	}()
	s := codec.DecodeSubmission(o.topicID, m)
	it.version = o.versionBase + viewkeeper.Version(m.Offset) + 1

	var outcome *registry.Outcome
	hash := codec.HashText(s)
	first, repeated := o.known.ids[s.ID]
	switch {
	case repeated && first.Text == hash:
		o.metrics.repeated()
		o.log.Info("statement repeated", "id", s.ID, "offset", m.Offset, "decided", first.Version)
		return nil
	case repeated:
		outcome = &registry.Outcome{Decision: o.idReused(s, it.version, first)}
	default:
		began := o.now()
		if outcome, err = o.judge.Judge(o.ctx, s); err != nil {
			return fmt.Errorf("judging statement %s at offset %d: %w", s.ID, m.Offset, err)
		}
		o.metrics.judged(&outcome.Decision, o.now().Sub(began))
		if !codec.IsDefaultID(s.ID) {
			it.id = &codec.ID{ID: s.ID, Text: hash, Version: it.version}
		}
	}
	if err := o.fill(it, outcome); err != nil {
		return err
	}
	if it.id != nil {
		o.known.add(*it.id)
	}
	d := it.decision
	o.log.Info("statement judged", "id", d.StatementID, "version", d.Version, "verdict", d.Verdict, "code", d.Code, "author", d.Author)
	return nil
}

// headRoom is what a commit row has beside its statements, at the very most.
const headRoom = 16 << 10

// fill takes an outcome into the item, cut down to what a record can hold.
func (o *owner) fill(it *item, outcome *registry.Outcome) error {
	d := outcome.Decision
	d.Epoch, d.Owner = o.epoch, o.cfg.NodeID
	d.Normalize()
	limit := o.cfg.RecordBytes - headRoom
	it.message = codec.EncodeDecision(d)
	it.size = sizeOf(it.message, outcome.Rows, it.id)
	it.rows = outcome.Rows
	if it.size > limit {
		if len(outcome.Rows) > 0 {
			// The judge let through, and made part of its catalog, what fits no
			// record. Its catalog is made anew without it.
			d, it.rows = tooLarge(d, it.size, limit), nil
			if err := o.reload(); err != nil {
				return err
			}
		} else {
			d = shrink(d)
		}
		it.message = codec.EncodeDecision(d)
		it.size = sizeOf(it.message, nil, it.id)
	}
	for i := range it.rows {
		it.rows[i].Epoch = o.epoch
		o.rows[it.rows[i].Name] = it.rows[i]
	}
	it.decision = &d
	return nil
}

// idReused is the decision about an id that came before with another text.
func (o *owner) idReused(s viewkeeper.Submission, v viewkeeper.Version, first codec.ID) viewkeeper.Decision {
	e := viewkeeper.Errorf(viewkeeper.CodeIDReused,
		"the statement id %s was used at version %d with another text; give every statement an id of its own", s.ID, first.Version)
	d := viewkeeper.Decision{
		StatementID: s.ID, Version: v, Offset: s.Offset, Verdict: viewkeeper.Refused, Code: e.Code, Message: e.Message,
		Author: s.Author, Reason: s.Reason, At: s.At, Engine: o.engine, BaseDigest: o.baseDigest, SQL: s.SQL,
	}
	o.metrics.statements.WithLabelValues(string(d.Verdict), string(d.Code)).Inc()
	return d
}

// reload makes the judge's catalog anew from the rows that are decided.
func (o *owner) reload() (err error) {
	rows := make([]viewkeeper.Row, 0, len(o.rows))
	for _, r := range o.rows {
		rows = append(rows, r)
	}
	o.judge, err = o.load(o.ctx, rows, registry.CatalogOptions{VersionBase: o.versionBase, Epoch: o.epoch, Owner: o.cfg.NodeID})
	if err != nil {
		return fmt.Errorf("loading the catalog of %d rows: %w", len(rows), err)
	}
	return nil
}

// finish finishes the batches that the follower has read past: their offsets are
// marked, in the order of the input, and goka is told.
func (o *owner) finish(certain int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.written) > 0 && o.written[0].last < certain {
		batch := o.written[0].items
		o.written = o.written[1:]
		o.session.MarkOffset(o.topics.Definitions(), 0, batch[len(batch)-1].offset+1, o.topicID)
		for _, it := range batch {
			o.reached.note(it.version) // certain only here: an acked one may be stale
			it.done(nil)
		}
	}
}

// end waits for the goroutines and leaves nothing undone. ctx has ended before.
func (o *owner) end() {
	o.wait.Wait()
	told := endOf(o.ctx)
	o.queue.close(told)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.written {
		for _, it := range w.items {
			it.done(told)
		}
	}
	o.written = nil
}
