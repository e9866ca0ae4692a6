package processor

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// group is the consumer group that goka is given. It puts our handler around goka's.
type group struct {
	sarama.ConsumerGroup
	life *life
}

// rejoin is the least time between two sessions.
const rejoin = 50 * time.Millisecond

// Consume runs sessions until ctx ends or a life's first failure. goka would wait for
// 5 s after each session, and a rebalance ends one.
func (g *group) Consume(ctx context.Context, topics []string, inner sarama.ConsumerGroupHandler) error {
	h := &handler{inner: inner, life: g.life}
	for {
		err := g.ConsumerGroup.Consume(ctx, topics, h)
		if failure := g.life.failure(); failure != nil {
			return failure
		}
		if err != nil {
			g.life.expelled.Store(errors.Is(err, sarama.ErrFencedInstancedId))
			g.life.fail(err)
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		g.life.log.Info("the group's session ended, joining again")
		pause := time.NewTimer(rejoin)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// handler is sarama's handler around goka's.
type handler struct {
	inner sarama.ConsumerGroupHandler
	life  *life
}

// Setup lets goka recover the table, and sets where the claim will begin: at the next
// offset to judge, by the commit row. What the group has committed is only a check.
func (h *handler) Setup(s sarama.ConsumerGroupSession) (err error) {
	l := h.life
	defer func() {
		if err != nil && s.Context().Err() == nil {
			l.fail(err)
		}
	}()
	claims := len(s.Claims()) > 0
	l.board.joined(claims)
	if !claims {
		l.log.Info("standing by: another process of the group has the partition")
		return h.inner.Setup(muted{s})
	}
	before, err := l.askPast(s.Context())
	if err != nil {
		return err
	}
	if err := h.inner.Setup(muted{s}); err != nil {
		return err
	}
	next, topicID, err := l.early(s.Context(), l.table.fold, before)
	if err != nil {
		return err
	}
	// One of them moves it up, the other down.
	s.MarkOffset(l.topics.Definitions(), 0, next, topicID)
	s.ResetOffset(l.topics.Definitions(), 0, next, topicID)
	return nil
}

// Cleanup lets goka end the session.
func (h *handler) Cleanup(s sarama.ConsumerGroupSession) error { return h.inner.Cleanup(muted{s}) }

// ConsumeClaim makes this process the owner, lets goka feed it, and ends it. goka
// gets no message before the owner is there, and none after it has ended.
func (h *handler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	l := h.life
	o, err := l.takeOver(s, l.table.fold)
	if err != nil {
		return err
	}
	l.owner.Store(o)
	defer l.owner.Store(nil)
	err = h.inner.ConsumeClaim(session{muted{s}, o.ctx}, claim)
	o.fail(errSessionEnded) // unless it failed before
	o.end()
	l.metrics.owner.Set(0)
	l.metrics.epoch.Set(0)
	if failure := endOf(o.ctx); failure != nil {
		return failure
	}
	l.log.Info("gave the partition back", "epoch", o.epoch)
	return err
}

// muted is a session that ignores what goka marks: goka marks the highest offset of
// all that is done, which loses what is not done below it. The owner marks.
type muted struct{ sarama.ConsumerGroupSession }

// MarkOffset does nothing.
func (muted) MarkOffset(string, int32, int64, string) {}

// MarkMessage does nothing.
func (muted) MarkMessage(*sarama.ConsumerMessage, string) {}

// session is the session as goka's claim sees it: it ends with the owner.
type session struct {
	muted
	ctx context.Context
}

// Context ends with the owner.
func (s session) Context() context.Context { return s.ctx }

// builder gives goka the wrapped group.
func (l *life) groupBuilder(brokers []string, name, clientID string) (sarama.ConsumerGroup, error) {
	g, err := l.settings.ConsumerGroupBuilder(l.instanceID)(brokers, name, clientID)
	if err != nil {
		return nil, err
	}
	return &group{g, l}, nil
}
