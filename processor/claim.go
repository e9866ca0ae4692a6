package processor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry"
)

func askInput(ctx context.Context, a *kafka.Admin, t kafka.Topics) (in fold.Input, err error) {
	if in.TopicID, err = a.TopicID(ctx, t.Definitions()); err != nil {
		return in, err
	}
	if in.Begin, err = a.BeginOffset(ctx, t.Definitions()); err != nil {
		return in, err
	}
	if in.End, err = a.EndOffset(ctx, t.Definitions()); err != nil {
		return in, err
	}
	if in.DecisionsEnd, err = a.EndOffset(ctx, t.Decisions()); err != nil {
		return in, err
	}
	if in.TableBegin, err = a.BeginOffset(ctx, t.Table()); err != nil {
		return in, err
	}
	in.Committed, err = askCommitted(ctx, a, t, in.TopicID)
	return in, err
}

// askCommitted gives the offset that the group has committed for the topic with this
// id, -1 for none. Owners commit the topic's id beside each offset, so that one of a
// topic that is no more, which Kafka may keep, is not taken for one of this.
func askCommitted(ctx context.Context, a *kafka.Admin, t kafka.Topics, topicID string) (int64, error) {
	offset, of, ok, err := a.CommittedWith(ctx, string(t.Group()), t.Definitions())
	if err != nil {
		return 0, err
	}
	if !ok || of != "" && of != topicID {
		return -1, nil
	}
	return offset, nil
}

// checkClaim says whether the catalog may be owned as the topics are, and what is the
// next offset to judge. It is pure. The error is a *BlockedError.
func checkClaim(t kafka.Topics, c *codec.Commit, in fold.Input) (next int64, err error) {
	next, claim := fold.CheckClaim(c, in)
	switch claim {
	case fold.ClaimTableTruncated:
		return 0, &BlockedError{viewkeeper.ReasonTableTruncated, fmt.Sprintf(
			"the topic %s begins at offset %d and not at 0: its first records were deleted, rows may be missing; make it anew and put the catalog back with viewkeeper restore",
			t.Table(), in.TableBegin)}
	case fold.ClaimTableDamaged:
		return 0, &BlockedError{viewkeeper.ReasonTableDamaged, fmt.Sprintf(
			"the definitions in the table %s are not those that its commit row at version %d sums up: one is missing or is another, as when rubbish lay over it for longer than compaction waits; put it back with viewkeeper restore, from an export, a node's copy, or the decisions",
			t.Table(), c.Version)}
	case fold.ClaimNewerOwner:
		return 0, &BlockedError{viewkeeper.ReasonUnknownRecords, fmt.Sprintf(
			"the record %s of the table %s is of a newer format than this program's: a newer program has owned the catalog, and this one would lose what it does not know; upgrade this process",
			in.NewerOwner, t.Table())}
	case fold.ClaimTableCommitted:
		return 0, &BlockedError{viewkeeper.ReasonTableBehind, fmt.Sprintf(
			"the table %s has no commit row, but statements up to offset %d of %s are committed as decided: the table was lost; put it back with viewkeeper restore",
			t.Table(), in.Committed, t.Definitions())}
	case fold.ClaimTableDecided:
		return 0, &BlockedError{viewkeeper.ReasonTableBehind, fmt.Sprintf(
			"the table %s has no commit row, but the topic %s holds decisions: the table was lost; put it back with viewkeeper restore",
			t.Table(), t.Decisions())}
	case fold.ClaimTableBehind:
		return 0, &BlockedError{viewkeeper.ReasonTableBehind, fmt.Sprintf(
			"statements up to offset %d of %s are committed as decided, but the commit row of %s is at version %d: the table lost its end; put it back with viewkeeper restore",
			in.Committed, t.Definitions(), t.Table(), c.Version)}
	case fold.ClaimOtherTopic:
		return 0, &BlockedError{viewkeeper.ReasonTopicRecreated, fmt.Sprintf(
			"the topic %s has the id %s and the catalog was decided from the one with id %s: it was made anew; accept it with viewkeeper topics adopt",
			t.Definitions(), in.TopicID, c.DefinitionsTopic)}
	case fold.ClaimInputEnd:
		return 0, &BlockedError{viewkeeper.ReasonTopicRecreated, fmt.Sprintf(
			"the topic %s ends at offset %d and statements up to %d were decided: it lost its end, and offsets would be given a second time; accept it with viewkeeper topics adopt",
			t.Definitions(), in.End, next)}
	}
	return next, nil
}

// reached is the highest version that this process has committed or gone on from, in
// all its lives. A table that has less is not the one that it was: made anew, or without
// its end. What restore puts back has more, or as much.
type reached struct{ version atomic.Uint64 }

func (r *reached) note(v viewkeeper.Version) {
	if uint64(v) > r.version.Load() {
		r.version.Store(uint64(v)) // one owner at a time writes it
	}
}

func (r *reached) check(t kafka.Topics, v viewkeeper.Version) error {
	if had := viewkeeper.Version(r.version.Load()); v < had {
		return &BlockedError{viewkeeper.ReasonTopicRecreated, fmt.Sprintf(
			"the topic %s has the catalog at version %d, and this process has seen it at version %d: it was made anew, or lost its end; put the catalog back into it with viewkeeper restore",
			t.Table(), v, had)}
	}
	return nil
}

// past is what was so before goka recovered the table, and can't be ahead of it: an
// owner that is still at work commits and decides more while the table is recovered.
type past struct{ committed, decisionsEnd int64 }

func (l *life) askPast(ctx context.Context) (p past, err error) {
	topicID, err := l.admin.TopicID(ctx, l.topics.Definitions())
	if err != nil {
		return p, err
	}
	if p.committed, err = askCommitted(ctx, l.admin, l.topics, topicID); err != nil {
		return p, err
	}
	p.decisionsEnd, err = l.admin.EndOffset(ctx, l.topics.Decisions())
	return p, err
}

// early checks a claim before the fence is written, so that a process that may not own
// the catalog does not stop one that does. table is the fold of the recovered table. It
// gives the next offset to judge.
func (l *life) early(ctx context.Context, table *fold.Fold, p past) (next int64, topicID string, err error) {
	in, err := askInput(ctx, l.admin, l.topics)
	if err != nil {
		return 0, "", err
	}
	in.Committed, in.DecisionsEnd = p.committed, p.decisionsEnd
	in.NewerOwner = table.NewerOwner()
	// Others may write meanwhile, so that it never comes to the end: it is asked as it was
	// when it was recovered.
	was := table.Clone()
	if gap, need := was.NeedEnd(); need {
		was.EndIs(gap, was.Next())
	}
	in.Damaged = was.Damaged()
	if err := l.reached.check(l.topics, table.Version()); err != nil {
		return 0, "", err
	}
	next, err = checkClaim(l.topics, table.Commit(), in)
	return next, in.TopicID, err
}

// takeOver makes this process the owner: everything between goka's recovery of the
// table and the first callback. table is the fold of the recovered table.
func (l *life) takeOver(session sarama.ConsumerGroupSession, table *fold.Fold) (o *owner, err error) {
	ctx, stop := context.WithCancelCause(session.Context())
	defer func() {
		if err == nil {
			return
		}
		stop(err)
		if o != nil {
			o.wait.Wait()
		}
		if !isEnd(err) {
			l.fail(err)
		}
	}()
	end := func(ctx context.Context) (int64, error) { return l.admin.ReadableEnd(ctx, l.topics.Table()) }
	o = &owner{
		cfg: l.cfg, topics: l.topics, log: l.log, metrics: l.metrics, board: l.board, troubles: l.troubles, now: l.now,
		ctx: ctx, stop: stop, session: session, sink: l.sink, load: l.load,
		reached: l.reached, follower: newFollower(table, end), queue: newQueue(l.cfg.QueueBytes), failed: l.fail,
		wrote: fold.Written{Last: -1, HealedTo: -1}, sweep: make(chan []*sarama.ProducerMessage, 1), purge: make(chan int64, 1),
	}
	o.follower.moved = o.finish
	table.Resume() // nobody knows how long ago goka recovered it
	o.markers = func(ctx context.Context, from, below int64) (int64, error) {
		return l.admin.Markers(ctx, l.topics.Definitions(), from, below)
	}
	fenceAt, err := o.writeFence(table.EpochBase())
	if err != nil {
		return o, err
	}
	from := max(table.Next(), 0)
	if from == 0 {
		from = kafka.FromOldest
	}
	o.wait.Go(func() {
		// When the follower ends, by an error or with ctx, the owner does too.
		err := l.settings.Tail(ctx, l.topics.Table(), from, func(m *sarama.ConsumerMessage) error { return o.follower.read(ctx, m) })
		if err == nil {
			err = errSessionEnded
		}
		o.fail(err)
	})
	if err := o.follower.wait(ctx, func(f *fold.Fold) bool { return f.Claimed(fenceAt) }); err != nil {
		return o, err
	}

	// Once more, as the table can't move any more.
	in, err := askInput(ctx, l.admin, l.topics)
	if err != nil {
		return o, err
	}
	o.topicID = in.TopicID
	var state fold.Recovery
	o.follower.with(func(f *fold.Fold) { state, in.NewerOwner, in.Damaged = f.Recover(o.epoch), f.NewerOwner(), f.Damaged() })
	if o.next, err = checkClaim(l.topics, state.Commit, in); err != nil {
		return o, o.unlessSuperseded(err)
	}
	o.wrote.First = state.Commit == nil
	o.last = o.startFrom(state.Start(o.fence, o.epoch), l.cfg.Base)
	o.versionBase, o.engine, o.baseDigest = o.last.VersionBase, o.last.Engine, o.last.BaseDigest
	version := o.last.Version
	if err := l.reached.check(l.topics, version); err != nil {
		return o, err
	}
	l.reached.note(version)
	if err := o.complete(state); err != nil {
		return o, err
	}
	o.live = fold.NewLive(state.Rows)
	o.known, o.ring = newKnown(state.IDs), fold.NewRing(state.IDs, state.NewerSlots)
	o.rows = make(map[viewkeeper.Name]viewkeeper.Row, len(state.Rows))
	for _, r := range state.Rows {
		o.rows[r.Name] = r
	}
	// The writer has nothing to write yet but heartbeats, and loading may take seconds.
	// What kept this process from owning until now is over.
	o.board.update(func(s *Status) { s.Reasons = nil })
	if err := o.heartbeat(); err != nil {
		return o, err
	}
	o.wait.Go(func() {
		if err := o.write(); err != nil {
			o.fail(err)
		}
	})
	if err := o.reload(); err != nil {
		return o, err
	}
	o.board.update(func(s *Status) {
		*s = Status{State: StateOwner, Since: s.Since, Epoch: o.epoch, Version: version}
	})
	o.ownerless(state)
	if in.Begin > o.next {
		o.lost(in.Begin-o.next, in.Begin)
		o.next = in.Begin
	}
	o.wait.Go(func() { l.sweepNodes(o) })
	o.wait.Go(func() { l.sweepTable(o) })
	o.metrics.takeovers.Inc()
	o.metrics.owner.Set(1)
	o.metrics.epoch.Set(float64(o.epoch))
	o.metrics.version.Set(float64(version))
	o.log.Info("took over", "epoch", o.epoch, "version", version, "rows", len(state.Rows), "ids", len(state.IDs), "next", o.next)
	return o, nil
}

// unlessSuperseded gives err, which says that the topics do not fit the table as it was
// read up to the fence, unless another owner has come since: then what the brokers said
// is its work, and the end of this one.
func (o *owner) unlessSuperseded(err error) error {
	end, failed := o.follower.end(o.ctx)
	if failed != nil {
		return failed
	}
	if failed := o.follower.wait(o.ctx, func(f *fold.Fold) bool { return f.Next() >= end }); failed != nil {
		return failed
	}
	return err
}

// compactionLag is min.compaction.lag.ms of the table, the least that is accepted.
const compactionLag = time.Hour

// ownerless reports that records lay unhealed for longer than compaction waits: it may
// have taken the good ones under them.
func (o *owner) ownerless(r fold.Recovery) {
	silent := o.now().Sub(r.LastSign)
	if r.LastSign.IsZero() || silent < compactionLag || len(r.Healing) == 0 {
		return
	}
	o.board.reason(viewkeeper.ReasonOwnerless, fmt.Sprintf(
		"the catalog had no owner for %s, and %d records that a former owner or a stranger wrote late lay unhealed; compaction waits for %s only and may have taken the good ones: compare the definitions with an export",
		silent.Round(time.Second), len(r.Healing), compactionLag))
}

// writeFence is rule 1. It sets the owner's epoch and gives the fence's offset.
func (o *owner) writeFence(base viewkeeper.Epoch) (int64, error) {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails, see crypto/rand
	o.fence = &codec.Fence{Nonce: hex.EncodeToString(nonce[:]), EpochBase: base, Owner: o.cfg.NodeID, At: o.now()}
	m := tableMessage(o.topics.Table(), o.fence)
	if err := o.send("the fence", m); err != nil {
		return 0, err
	}
	if m.Offset == kafka.OffsetUnknown {
		return 0, fmt.Errorf("the fence is written, and the broker did not say at which offset; taking over again")
	}
	o.epoch = fold.FenceEpoch(o.fence, m.Offset)
	o.follower.epoch, o.follower.node = o.epoch, o.cfg.NodeID
	return m.Offset, nil
}

// startFrom fills in what the first commit row goes on from.
func (o *owner) startFrom(start *codec.Commit, base *registry.Base) *codec.Commit {
	if start.DefinitionsTopic == "" {
		start.DefinitionsTopic = o.topicID
	}
	start.Owner = o.cfg.NodeID
	if base != nil {
		start.Engine, start.BaseDigest = base.Engine().Name, base.Engine().BaseDigest
	}
	return start
}
