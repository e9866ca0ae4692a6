package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// A part is what runs beside goka's view and is started again when it fails: the
// readers of the other topics, and the writer of the nodes topic. What it runs into is
// a reason of the node until it has worked again for a while.
type part struct {
	// name says what it is in a sentence, right what it needs of Kafka.
	name, right string
	topic       string

	// The rest is guarded by Node.mu.

	err   error // of the last run that failed; nil when all is well
	class kafka.Class
	since time.Time // of the first failure
	// works is since when the present run has been let do what it is for.
	works time.Time
}

// parts are a node's.
type parts struct{ history, nodes, intake, publish part }

func newParts(t kafka.Topics) parts {
	return parts{
		history: part{name: "the history index", right: "Read", topic: t.Decisions()},
		nodes:   part{name: "the list of the live nodes", right: "Read", topic: t.Nodes()},
		intake:  part{name: "the list of what is not decided yet", right: "Read", topic: t.Definitions()},
		publish: part{name: "telling the other nodes of this one", right: "Write", topic: t.Nodes()},
	}
}

func (p *parts) all() []*part { return []*part{&p.history, &p.nodes, &p.intake, &p.publish} }

// dataDirError is an error of the data directory.
type dataDirError struct{ error }

// Unwrap gives the error itself.
func (e dataDirError) Unwrap() error { return e.error }

// keep runs a part until ctx ends.
func (n *Node) keep(ctx context.Context, p *part, run func(context.Context) error) error {
	s := n.supervision(p.name, func(err error, class kafka.Class, _ time.Duration) { n.partEnded(p, err, class) })
	s.Began = func() { n.partWorks(p, time.Time{}) }
	return kafka.Supervise(ctx, s, run)
}

func (n *Node) partEnded(p *part, err error, class kafka.Class) {
	n.mu.Lock()
	if p.err == nil {
		p.since = time.Now()
	}
	if p.err, p.class = err, class; err == nil {
		p.err = errors.New("it ended by itself")
	}
	n.mu.Unlock()
	n.wake.fire()
	poke(n.publish)
}

func (n *Node) partWorks(p *part, since time.Time) {
	n.mu.Lock()
	p.works = since
	n.mu.Unlock()
}

// settleParts forgets the failures of those that have worked for long enough: a right
// that is missing shows a moment after the topic's leader has answered.
func (n *Node) settleParts(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.parts.all() {
		if p.err != nil && !p.works.IsZero() && now.Sub(p.works) > n.time.ping {
			p.err, p.since = nil, time.Time{}
		}
	}
}

// tail reads a topic for a part. It lets records gather, see kafka.TailGathered: what
// must be known at once comes from the table. A fleet of nodes that each asked for every
// record by itself would cost the brokers more than the catalog does.
func (n *Node) tail(ctx context.Context, p *part, from int64, gather func() time.Duration, read func(*sarama.ConsumerMessage) error) error {
	return n.settings.TailGathered(ctx, p.topic, from, func() { n.partWorks(p, time.Now()) }, gather, read)
}

// gatherSome is how long the decisions, and the statements that are not decided, gather.
func (n *Node) gatherSome() time.Duration { return n.time.gather }

// partFaults adds what the parts ran into, to the sentence of the reason that is there
// already for another cause. A leader that moves cuts connections, and the next run is
// well: what may be only that is a reason when it lasts. n.mu is held.
func (n *Node) partFaults(a *assessment, now time.Time) {
	for _, p := range n.parts.all() {
		var dir dataDirError
		passing := (p.class.Kind == kafka.KindAway || p.class.Kind == kafka.KindOther) && !errors.As(p.err, &dir)
		if p.err == nil || passing && (!p.works.IsZero() || now.Sub(p.since) < n.time.ping) {
			continue
		}
		code, detail := p.fault()
		if a.reasons[code] != "" {
			continue
		}
		if before := a.degraded[code]; before != "" {
			if code == viewkeeper.ReasonKafkaAway {
				continue // of the brokers all is said
			}
			detail = before + "; " + detail
		}
		a.degraded[code] = detail
	}
}

// fault gives a part's failure as a reason with its sentence.
func (p *part) fault() (code, detail string) {
	var dir dataDirError
	if errors.As(p.err, &dir) {
		return viewkeeper.ReasonDataDir, fmt.Sprintf("%s can't go on (%v); make room in the data directory and see that it can be written, it goes on by itself then", p.name, p.err)
	}
	switch p.class.Kind {
	case kafka.KindDenied:
		return viewkeeper.ReasonKafkaDenied, fmt.Sprintf("%s can't go on (%v); give this process's user %s on the topic %s, as with kafka-acls --add --allow-principal User:NAME --operation %s --topic %s; it goes on by itself then",
			p.name, p.err, p.right, p.topic, p.right, p.topic)
	case kafka.KindAway:
		return viewkeeper.ReasonKafkaAway, fmt.Sprintf("%s can't go on since %s (%v)", p.name, p.since.UTC().Format(time.TimeOnly), p.err)
	case kafka.KindMissing:
		return viewkeeper.ReasonTopicMissing, fmt.Sprintf("%s can't go on: the topic %s is not there; viewkeeper topics create makes it", p.name, p.topic)
	case kafka.KindChanged:
		return viewkeeper.ReasonTopicRecreated, fmt.Sprintf("%s begins anew: %v", p.name, p.err)
	}
	return viewkeeper.ReasonFailing, fmt.Sprintf("%s fails and is tried again: %v", p.name, p.err)
}
