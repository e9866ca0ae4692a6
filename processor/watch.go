package processor

import (
	"context"
	"errors"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// identityEvery is the most between two looks at which topics these are. It is cheap, and
// until it is seen statements are judged and written where nobody will look for them.
const identityEvery = 5 * time.Second

// watchTopics looks at the topics again and again while the life goes on. goka would
// go on with the old rows of a table that was made anew.
func (l *life) watchTopics(ctx context.Context) {
	settings, identity := time.NewTicker(l.cfg.CheckTopics), time.NewTicker(min(l.cfg.CheckTopics, identityEvery))
	defer settings.Stop()
	defer identity.Stop()
	missing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-settings.C:
			l.noteTopics(l.checkTopics(ctx))
		case <-identity.C:
			o := l.owner.Load()
			if o == nil {
				continue
			}
			was, err := missing, error(nil)
			if missing, err = l.checkIdentity(ctx, o); err != nil && ctx.Err() == nil {
				o.fail(err)
			}
			if missing || was {
				l.noteTopics(l.checkTopics(ctx))
			}
		}
	}
}

// noteTopics keeps what the last look at the topics found as a reason, one at a time.
// That brokers do not answer is noticed by who reads and writes.
func (l *life) noteTopics(err error) {
	var problems *kafka.ProblemsError
	if err != nil && !errors.As(err, &problems) {
		return
	}
	code, detail := reasonOf(err)
	for _, of := range []string{viewkeeper.ReasonTopicSettings, viewkeeper.ReasonTopicMissing} {
		if of == code {
			l.board.reason(of, detail)
		} else {
			l.board.reason(of, "")
		}
	}
}

// checkIdentity notices a definitions topic that is not the one which this owner
// judges, and a table that is not the one that it recovered; missing says that one of
// them is not there.
func (l *life) checkIdentity(ctx context.Context, o *owner) (missing bool, err error) {
	found, err := l.admin.Describe(ctx, l.topics.Definitions(), l.topics.Table())
	if err != nil {
		return false, nil // that brokers are away is noticed by who reads and writes
	}
	for _, known := range [...]struct{ topic, id string }{{l.topics.Definitions(), o.topicID}, {l.topics.Table(), l.guard.ID()}} {
		t, ok := found[known.topic]
		if ok && t.ID != known.id {
			return false, &kafka.TopicChangedError{Topic: known.topic, Known: known.id, Found: t.ID}
		}
		missing = missing || !ok
	}
	return missing, nil
}
