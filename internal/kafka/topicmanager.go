package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
)

// Guard remembers which topic a follower has been reading, over all its restarts,
// and notices when it becomes another one. goka would go on with the old rows and
// skip the new ones.
//
// The first load learns the topic's id. Each later load compares it, and the end
// offset with the highest one seen. The same check can be run on a timer, since
// goka asks for offsets only when it loads.
type Guard struct {
	topic string

	mu  sync.Mutex
	id  string
	end int64
	err error
}

// NewGuard makes a guard for a topic. id is the id already known, or "".
func NewGuard(topic, id string) *Guard { return &Guard{topic: topic, id: id} }

// Seen tells the guard that the record at offset was read.
func (g *Guard) Seen(offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end = max(g.end, offset+1)
}

// ID is the id that is known, or "".
func (g *Guard) ID() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.id
}

// Err is the *TopicChangedError that the guard found last, or nil. It is here
// since goka does not pass errors on as they are.
func (g *Guard) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Accept makes the topic with this id the known one, read from nothing.
func (g *Guard) Accept(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id, g.end, g.err = id, 0, nil
}

// Look asks for the topic's id and end, and compares them with what was known before
// it asked. It gives both. The error is a *TopicChangedError, or about asking.
func (g *Guard) Look(ctx context.Context, a *Admin) (id string, end int64, err error) {
	before := g.Before()
	if id, end, err = a.EndOf(ctx, g.topic); err != nil {
		return "", 0, err
	}
	return id, end, g.Compare(before, id, end)
}

// Before is the end that is known now. An answer may be compared only with what was
// known before its question: while it is on its way, records after it are read.
func (g *Guard) Before() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.end
}

// Compare looks at what a broker said after Before. The error is a
// *TopicChangedError.
func (g *Guard) Compare(before int64, id string, end int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = nil
	switch {
	case g.id == "":
		g.id = id
	case g.id != id || end < before:
		g.err = &TopicChangedError{Topic: g.topic, Known: g.id, Found: id, KnownEnd: before, FoundEnd: end}
		return g.err
	}
	g.end = max(g.end, end)
	return nil
}

// topicManager is goka's TopicManager over Admin. It never creates a topic: goka
// asks it to ensure that topics exist, and it only says whether they do.
type topicManager struct {
	admin *Admin
	guard *Guard
}

func newTopicManager(s Settings, guard *Guard) (*topicManager, error) {
	a, err := s.OpenAdmin(context.Background())
	if err != nil {
		return nil, err
	}
	return &topicManager{a, guard}, nil
}

func (m *topicManager) ensure(topic string, partitions int) error {
	ps, err := m.Partitions(topic)
	if err == nil && len(ps) != partitions {
		err = fmt.Errorf("the topic %s has %d partitions and must have %d; make it anew", topic, len(ps), partitions)
	}
	return err
}

func (m *topicManager) EnsureTableExists(topic string, npar int) error { return m.ensure(topic, npar) }

func (m *topicManager) EnsureStreamExists(topic string, npar int) error { return m.ensure(topic, npar) }

func (m *topicManager) EnsureTopicExists(topic string, npar, _ int, _ map[string]string) error {
	return m.ensure(topic, npar)
}

// Partitions gives the partitions in order, or a *MissingTopicError.
func (m *topicManager) Partitions(topic string) ([]int32, error) {
	found, err := m.admin.Describe(context.Background(), topic)
	if err != nil {
		return nil, err
	}
	t, ok := found[topic]
	if !ok {
		return nil, &MissingTopicError{topic}
	}
	ps := make([]int32, t.Partitions)
	for i := range ps {
		ps[i] = int32(i)
	}
	return ps, nil
}

// GetOffset asks the broker; for the guarded topic's end it asks the guard as well,
// and gives the end that can be read to.
func (m *topicManager) GetOffset(topic string, partition int32, at int64) (int64, error) {
	if m.guard == nil || topic != m.guard.topic || at != sarama.OffsetNewest {
		return m.admin.client.GetOffset(topic, partition, at)
	}
	_, end, err := m.guard.Look(context.Background(), m.admin)
	if err != nil {
		return 0, err
	}
	begin, err := m.admin.BeginOffset(context.Background(), topic)
	if err != nil {
		return 0, err
	}
	// goka waits for the record just below the end, which a marker never becomes.
	return m.admin.readable(context.Background(), topic, begin, end)
}

// Close may be called twice: goka closes some of the managers that it asks for.
func (m *topicManager) Close() error {
	if m.admin.client.Closed() {
		return nil
	}
	return m.admin.Close()
}
