package view

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/view/internal/history"
)

// historyBatch is how many records are written to the index at once.
const historyBatch = 500

// keepHistory opens the index and fills it from the decisions topic, until ctx ends
// or something fails. The supervisor calls it again.
func (n *Node) keepHistory(ctx context.Context) error {
	d := n.decisions
	var id history.Identity
	var begin int64
	err := n.brokers.ask(ctx, func(a *kafka.Admin) (err error) {
		if id.Topic, err = a.TopicID(ctx, n.topics.Decisions()); err != nil {
			return err
		}
		if begin, err = a.BeginOffset(ctx, n.topics.Decisions()); err != nil {
			return err
		}
		id.Cluster, _, err = a.Cluster(ctx)
		return err
	})
	if err != nil {
		return errors.Join(err, n.openKeptHistory())
	}
	index, err := n.openHistory(id)
	if err != nil {
		return dataDirError{err}
	}
	d.mu.Lock()
	d.begin, d.whole = begin, 0
	d.mu.Unlock()
	poke(d.need)
	err = n.fillHistory(ctx, index, begin)
	d.mu.Lock()
	defer d.mu.Unlock()
	if history.Damaged(err) || d.damaged {
		n.log.Warn("the history index is damaged; it is thrown away and read anew from Kafka", "error", err)
		d.index, d.damaged = nil, false
		_ = index.Close()
		return errors.Join(err, history.Remove(n.historyDir()))
	}
	var dir dataDirError
	if errors.As(err, &dir) && d.index == index {
		// A write that failed halfway leaves a file that only opening it anew can judge.
		d.index = nil
		_ = index.Close()
	}
	return err
}

// errDamaged ends the filling of an index that a reader found damaged.
var errDamaged = errors.New("the history index is damaged")

func (n *Node) historyDir() string {
	if n.cfg.DataDir == "" {
		return ""
	}
	return filepath.Join(n.cfg.DataDir, "history")
}

// openHistory gives the open index if it is of this topic, or opens it.
func (n *Node) openHistory(id history.Identity) (*history.Index, error) {
	d := n.decisions
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, context.Canceled
	}
	if d.index != nil && d.index.Identity() == id {
		return d.index, nil
	}
	if d.index != nil {
		_ = d.index.Close()
		d.index = nil
	}
	index, why, err := history.Open(n.historyDir(), id)
	if why != "" {
		if count, say := d.thrown.Happened(time.Now(), 1); say {
			n.log.Warn("the history index was thrown away and is read anew from Kafka", "why", why, "times", count)
		}
	}
	if err != nil {
		return nil, err
	}
	// Not a moment may it pass for whole: the one before was.
	d.index, d.whole = index, 0
	return index, nil
}

// openKeptHistory opens the index as it is while the brokers can't say of which topic
// it should be. It answers from what it has; that it is whole nobody says.
func (n *Node) openKeptHistory() error {
	d := n.decisions
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil
	case d.damaged && d.index != nil:
		_ = d.index.Close()
		d.index, d.damaged = nil, false
		return history.Remove(n.historyDir())
	case d.index != nil:
		return nil
	}
	index, err := history.OpenKept(n.historyDir())
	if err == nil && index != nil {
		d.index, d.whole = index, 0
		n.wake.fire()
	}
	return err
}

// fillHistory reads the decisions topic into the index. Whenever commit rows may
// have been missed it asks for the topic's end, and says when it got there.
func (n *Node) fillHistory(ctx context.Context, index *history.Index, begin int64) error {
	ctx, cancel := context.WithCancel(ctx)
	entries := make(chan history.Entry, historyBatch)
	ended := make(chan error, 1)
	from := max(index.Next(), begin)
	go func() {
		ended <- n.tail(ctx, &n.parts.history, from, n.gatherSome, func(m *sarama.ConsumerMessage) error {
			e := history.Entry{Offset: m.Offset}
			if d, err := codec.DecodeDecision(m.Value); err == nil {
				e.Decision = &d
			}
			select {
			case entries <- e:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	defer func() {
		cancel()
		<-ended
	}()

	var target int64
	var goal int // the break that target is for; 0 when there is none
	again := time.NewTimer(time.Hour)
	again.Stop()
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			ended <- err
			return err
		case e := <-entries:
			batch := []history.Entry{e}
		more:
			for len(batch) < historyBatch {
				select {
				case e := <-entries:
					batch = append(batch, e)
				default:
					break more
				}
			}
			if err := index.Add(batch); err != nil {
				return dataDirError{err}
			}
			n.metrics.indexed.Set(float64(index.Next()))
		case <-n.decisions.need:
			if n.decisions.isDamaged() {
				return errDamaged
			}
			var err error
			if goal, target, err = n.historyGoal(ctx); err != nil {
				again.Reset(n.time.restartFirst)
			}
		case <-again.C:
			poke(n.decisions.need)
		}
		if goal > 0 && max(index.Next(), begin) >= target {
			n.decisions.mu.Lock()
			n.decisions.whole = goal
			n.decisions.mu.Unlock()
			goal = 0
		}
		n.decisions.trim()
		n.wake.fire()
	}
}

// historyGoal asks for the end that must be reached for the present break.
func (n *Node) historyGoal(ctx context.Context) (goal int, end int64, err error) {
	n.decisions.mu.Lock()
	goal = n.decisions.wanted
	n.decisions.mu.Unlock()
	if goal == 0 {
		return 0, 0, nil // no commit row was seen yet
	}
	err = n.brokers.ask(ctx, func(a *kafka.Admin) (err error) {
		end, err = a.ReadableEnd(ctx, n.topics.Decisions())
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return goal, end, nil
}

func (d *decisions) isDamaged() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.damaged
}
