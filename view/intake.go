package view

import (
	"context"
	"sync"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// intake knows the statements that were read from the definitions topic and are not
// decided yet, so that "seen" can be told from "never heard of" on every node.
type intake struct {
	mu      sync.Mutex
	offsets map[string]int64 // of undecided statements, by id
	order   []string         // the ids as they were read
}

// intakeMost is how many undecided statements are known; of more the oldest are
// forgotten, which makes them "not seen here".
const intakeMost = 10000

func newIntake() *intake { return &intake{offsets: map[string]int64{}} }

func (i *intake) add(id string, offset int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.offsets[id]; !ok {
		i.order = append(i.order, id)
	}
	i.offsets[id] = offset
	for len(i.order) > intakeMost {
		delete(i.offsets, i.order[0])
		i.order = i.order[1:]
	}
}

// decided forgets all below the next offset to decide.
func (i *intake) decided(next int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := 0
	for n < len(i.order) && i.offsets[i.order[n]] < next {
		delete(i.offsets, i.order[n])
		n++
	}
	i.order = i.order[n:]
}

func (i *intake) has(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.offsets[id]
	return ok
}

// nextToDecide is the offset of the first statement that the node does not know to
// be decided.
func (n *Node) nextToDecide() int64 {
	d := n.decisions
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.commit == nil {
		return 0
	}
	return int64(d.commit.Version - d.commit.VersionBase)
}

// followIntake reads the definitions topic from the first undecided statement on.
func (n *Node) followIntake(ctx context.Context) error {
	// Before the first commit row is known, all of the topic would seem undecided.
	err := n.waitFor(ctx, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.accepted != nil && !n.accepted.fold.Collecting()
	})
	if err != nil {
		return nil
	}
	var topic string
	var begin, end int64
	err = n.brokers.ask(ctx, func(a *kafka.Admin) (err error) {
		if topic, end, err = a.EndOf(ctx, n.topics.Definitions()); err != nil {
			return err
		}
		begin, err = a.BeginOffset(ctx, n.topics.Definitions())
		return err
	})
	if err != nil {
		return err
	}
	from := min(max(n.nextToDecide(), begin), end)
	return n.tail(ctx, &n.parts.intake, from, n.gatherSome, func(m *sarama.ConsumerMessage) error {
		n.intake.decided(n.nextToDecide())
		if m.Offset >= n.nextToDecide() {
			n.intake.add(submissionID(topic, m), m.Offset)
		}
		return nil
	})
}

func submissionID(topic string, m *sarama.ConsumerMessage) string {
	msg := codec.Message{Key: m.Key, Offset: m.Offset}
	for _, h := range m.Headers {
		msg.Headers = append(msg.Headers, codec.Header{Key: string(h.Key), Value: h.Value})
	}
	return codec.DecodeSubmission(topic, msg).ID
}

// Pending counts the statements that were seen and are not decided yet.
func (n *Node) Pending() int {
	n.intake.decided(n.nextToDecide())
	n.intake.mu.Lock()
	defer n.intake.mu.Unlock()
	return len(n.intake.order)
}
