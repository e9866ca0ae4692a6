package processor

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// write is the writer: all that the owner writes after it took over, one flight at a
// time, until ctx ends or a flight fails. The first failure is the last: what became
// of a failed flight is not known, so nothing can be written after it.
func (o *owner) write() error {
	beat := time.NewTicker(o.cfg.Heartbeat)
	defer beat.Stop()
	for {
		// One that ended writes nothing more, whatever else is ready.
		if o.ctx.Err() != nil {
			return nil
		}
		var err error
		select {
		case <-o.ctx.Done():
			return nil
		case <-o.queue.ready:
			err = o.writeBatch(o.queue.take(o.cfg.BatchBytes))
		case gone := <-o.sweep:
			err = o.send("the end of old nodes", gone...)
		case below := <-o.purge:
			err = o.purgeDrops(below)
		case <-beat.C:
			if err = o.heal(); err == nil {
				err = o.heartbeat()
			}
		}
		if err != nil {
			return err
		}
	}
}

// writeBatch writes a batch and leaves it to be finished.
func (o *owner) writeBatch(batch []*item) error {
	if len(batch) == 0 {
		return nil
	}
	last, err := int64(-1), error(nil)
	if slices.ContainsFunc(batch, func(it *item) bool { return it.version != 0 }) {
		last, err = o.commit(batch)
	}
	if err != nil {
		last = never
	}
	o.mu.Lock()
	o.written = append(o.written, written{last, batch})
	o.mu.Unlock()
	if err != nil {
		return err
	}
	o.finish(o.follower.certain())
	return nil
}

// commit is the group commit. The commit row is acked before anything else goes out;
// then rows, ids and decisions go in one flight; the next commit row, which
// overwrites the record of what is open, waits for all of its acks. It gives the
// offset of the batch's last record of the table.
func (o *owner) commit(batch []*item) (int64, error) {
	began := time.Now()
	commit := commitRow(o.last, batch)
	commit.At = o.now()
	for _, r := range commit.Rows {
		o.live.Put(r)
	}
	commit.Live = o.live.At(commit.Version)
	if err := o.send("the commit row", o.tableMessages(commit)...); err != nil {
		return 0, err
	}
	o.last = commit
	if o.wrote.First {
		if err := o.follower.wait(o.ctx, o.wrote.MayFollow); err != nil {
			return 0, err
		}
		o.wrote.First = false
	}
	if err := o.send("rows and decisions", o.flight(commit, batch)...); err != nil {
		return 0, err
	}
	o.metrics.commit.Observe(time.Since(began).Seconds())
	o.metrics.batch.Observe(float64(len(batch)))
	o.metrics.version.Set(float64(commit.Version))
	o.board.update(func(s *Status) { s.Version = commit.Version })
	return o.wrote.Last, nil
}

// flight gives what follows a commit row: its rows, the slots of its ids, and its
// decisions.
func (o *owner) flight(commit *codec.Commit, batch []*item) []*sarama.ProducerMessage {
	out := o.tableMessages(o.ring.Flight(commit)...)
	for _, it := range batch {
		if it.decision != nil {
			out = append(out, topicMessage(o.topics.Decisions(), it.message))
		}
	}
	return out
}

// tableMessages gives records as they are about to be written, which the follower will
// know by their bytes.
func (o *owner) tableMessages(records ...codec.Record) []*sarama.ProducerMessage {
	out := make([]*sarama.ProducerMessage, len(records))
	for i, r := range records {
		out[i] = tableMessage(o.topics.Table(), r)
	}
	o.follower.writes(records, out)
	return out
}

// send writes one flight and waits for its acks.
func (o *owner) send(what string, messages ...*sarama.ProducerMessage) error {
	if len(messages) == 0 {
		return nil
	}
	if err := o.sink.send(messages); err != nil {
		if errors.Is(err, sarama.ErrMessageSizeTooLarge) {
			// No record is larger than a topic with the right settings takes.
			return &BlockedError{viewkeeper.ReasonTopicSettings, fmt.Sprintf(
				"writing %s: %v: max.message.bytes of the topic was lowered; set it to %d again, and the owner goes on by itself", what, err, kafka.MaxMessageBytes)}
		}
		return fmt.Errorf("writing %s: %w", what, err)
	}
	for _, m := range messages {
		if m.Topic != o.topics.Table() {
			continue
		}
		offset := m.Offset
		if offset == kafka.OffsetUnknown {
			// The broker had it already; the table's end is behind it in any case.
			end, err := o.follower.end(o.ctx)
			if err != nil {
				return fmt.Errorf("writing %s: %w", what, err)
			}
			offset = end - 1
		}
		o.wrote.Acked(offset)
	}
	return nil
}

// heartbeat writes the heartbeat row.
func (o *owner) heartbeat() error {
	status, _ := o.board.get()
	return o.send("the heartbeat", tableMessage(o.topics.Table(), &codec.Heartbeat{
		Version: o.last.Version, Epoch: o.epoch, Owner: o.cfg.NodeID, At: o.now(),
		Engine: o.last.Engine, BaseDigest: o.last.BaseDigest, Reasons: status.Reasons,
	}))
}

// heal is rule 6, for what the follower has seen since the last time.
func (o *owner) heal() error {
	var spoiled bool
	o.follower.with(func(f *fold.Fold) { spoiled = o.wrote.MustHeal(f, o.epoch) })
	if !spoiled {
		return nil
	}
	if err := o.follower.wait(o.ctx, o.wrote.MayHeal); err != nil {
		return nil // the owner has ended
	}
	var records []codec.Record
	o.follower.with(func(f *fold.Fold) { records = f.Heal(o.epoch) })
	o.metrics.healed.Add(float64(len(records)))
	o.troubles.recordsHealed(o.log, len(records))
	return o.rewrite("healing", records)
}

// rewrite writes records again that lie in the table already, one way or another.
func (o *owner) rewrite(what string, records []codec.Record, more ...*sarama.ProducerMessage) error {
	out := make([]*sarama.ProducerMessage, 0, len(records)+len(more))
	for _, r := range records {
		out = append(out, tableMessage(o.topics.Table(), r))
	}
	if out = append(out, more...); len(out) == 0 {
		return nil
	}
	level := slog.LevelInfo
	if len(records) == 0 {
		// The last decisions, which every take-over writes again: nobody knows whether
		// the owner before came to it.
		level = slog.LevelDebug
	}
	o.log.Log(o.ctx, level, "writing again", "why", what, "table", len(records), "decisions", len(more))
	if err := o.send(what, out...); err != nil {
		return err
	}
	o.wrote.Healed()
	return nil
}

// complete is rules 3 and 6 at the take-over: what the counting commit row holds and
// the owner before may not have come to, and what is to be healed, before anything
// new is judged.
func (o *owner) complete(r fold.Recovery) error {
	o.metrics.completed.Add(float64(len(r.Completion)))
	o.metrics.healed.Add(float64(len(r.Healing)))
	o.troubles.recordsHealed(o.log, len(r.Healing))
	var decisions []*sarama.ProducerMessage
	for _, d := range r.Decisions {
		decisions = append(decisions, topicMessage(o.topics.Decisions(), codec.EncodeDecision(d)))
	}
	return o.rewrite("the last batch of the owner before, and healing", append(r.Completion, r.Healing...), decisions...)
}
