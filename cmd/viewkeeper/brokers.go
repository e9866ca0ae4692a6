package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/server"
)

// topicsClient is a client without a node: it writes statements to the topic and
// reads the answers from the other topics.
type topicsClient struct {
	kafka.Settings
	kafka.Topics
	admin   *kafka.Admin
	emitter *kafka.Emitter
	sizes   ddl.Limits
}

// kafkaSettings gives the settings of every Kafka client of this process.
func (a *app) kafkaSettings() (kafka.Settings, kafka.Topics, error) {
	none, topics := kafka.Settings{}, kafka.Topics{Catalog: a.Catalog}
	if len(a.Brokers) == 0 {
		return none, topics, usagef("give the Kafka brokers with --brokers")
	}
	if a.Catalog == "" {
		return none, topics, usagef("give the catalog with --catalog")
	}
	if err := viewkeeper.CatalogName(a.Catalog); err != nil {
		return none, topics, usagef("--catalog: %w", err)
	}
	settings, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: a.Brokers})
	if err != nil {
		return none, topics, usagef("--brokers: %w", err)
	}
	return settings, topics, nil
}

// openTopics connects to the brokers.
func (a *app) openTopics() (*topicsClient, error) {
	settings, topics, err := a.kafkaSettings()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.Timeout)
	defer cancel()
	admin, err := settings.OpenAdmin(ctx)
	if err != nil {
		return nil, kafkaFailure(err)
	}
	return &topicsClient{settings, topics, admin, settings.NewEmitter(topics), a.sizes()}, nil
}

// Close disconnects.
func (c *topicsClient) Close() error { return errors.Join(c.emitter.Close(), c.admin.Close()) }

// kafkaFailure gives an error of Kafka the exit status that it stands for.
func kafkaFailure(err error) error {
	if err == nil {
		return nil
	}
	var unknown *kafka.UnknownOutcomeError
	switch {
	case errors.As(err, &unknown):
		return timeoutf("%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return timeoutf("Kafka did not answer in time; look whether its brokers are well, or give a longer --timeout (%w)", err)
	}
	switch kafka.Classify(err).Kind {
	case kafka.KindAway, kafka.KindMissing:
		return unreachablef("%w", err)
	}
	return refusedf("%w", err)
}

// submit writes a statement and waits for its decision on the decisions topic.
func (c *topicsClient) submit(ctx context.Context, sub viewkeeper.Submission, query url.Values) (*answer, error) {
	timeout, err := time.ParseDuration(query.Get("timeout"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if sub.Key, err = server.RecordKey(c.sizes, sub.SQL, sub.ID); viewkeeper.CodeOf(err) == viewkeeper.CodeTooLarge {
		return nil, refusedf("%w; nothing was written", err)
	}
	if err := codec.CheckID(sub.ID); err != nil {
		return nil, usagef("--id: %w", err)
	}
	// Decisions are looked for from here on, so nothing can be missed in between.
	from, err := c.admin.ReadableEnd(ctx, c.Decisions())
	if err != nil {
		return nil, fmt.Errorf("%w; nothing was written", kafkaFailure(err))
	}
	if _, err := c.emitter.Emit(ctx, sub); err != nil {
		return nil, kafkaFailure(err)
	}
	d, err := c.awaitDecision(ctx, sub, from)
	if err != nil {
		return nil, err
	}
	ans := &answer{Decision: d.ForClient()}
	if query.Get("wait") != "fleet" || d.Verdict == viewkeeper.Refused {
		// Nobody was asked who has it: no empty lists that would say otherwise.
		ans.raw, err = json.Marshal(ans.Decision)
		return ans, err
	}
	if ans.Reached, ans.Missing, err = c.waitFleet(ctx, d.Version); err != nil && ctx.Err() == nil {
		// Without the right to read the nodes topic, for one. It is decided all the same.
		ans.waitErr, ans.Reached, ans.Missing = err, []string{}, []string{"(unknown)"}
	}
	ans.raw, err = json.Marshal(ans)
	return ans, err
}

// awaitDecision reads the decisions topic until the statement's is there. A
// statement that was sent before gets no second decision, so the earlier ones are
// read as well when nothing new comes.
func (c *topicsClient) awaitDecision(ctx context.Context, sub viewkeeper.Submission, from int64) (viewkeeper.Decision, error) {
	var found *viewkeeper.Decision
	match := func(m *sarama.ConsumerMessage) bool {
		if d, err := codec.DecodeDecision(m.Value); err == nil && d.StatementID == sub.ID {
			found = &d
		}
		return found != nil
	}
	if from > 0 && sub.ID != "" {
		if err := c.read(ctx, c.Decisions(), sarama.OffsetOldest, from, match); err != nil {
			return viewkeeper.Decision{}, kafkaFailure(err)
		}
		if found != nil && found.SQL == sub.SQL {
			return *found, nil
		}
		found = nil
	}
	if err := c.read(ctx, c.Decisions(), from, follow, match); err != nil {
		if ctx.Err() != nil {
			return viewkeeper.Decision{}, timeoutf("statement %s is written and was not decided in time; is there a live owner?", sub.ID)
		}
		return viewkeeper.Decision{}, kafkaFailure(err)
	}
	return *found, nil
}

// follow reads on at the end of a topic.
const follow = -1

// read gives the records of a topic from an offset on to each, until that returns
// true, or up to the end given, which is one that can be read to.
func (c *topicsClient) read(ctx context.Context, topic string, from, end int64, each func(*sarama.ConsumerMessage) (done bool)) error {
	if end == 0 {
		return nil
	}
	consumer, err := kafka.Bounded(ctx, func() (sarama.Consumer, error) {
		return sarama.NewConsumer(c.Brokers, c.Sarama())
	}, func(late sarama.Consumer) { _ = late.Close() })
	if err != nil {
		return fmt.Errorf("reading topic %s: %w", topic, err)
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, from)
	if err != nil {
		return fmt.Errorf("reading topic %s from offset %d: %w", topic, from, err)
	}
	defer partition.AsyncClose()
	for {
		select {
		case m, ok := <-partition.Messages():
			switch {
			case !ok:
				return fmt.Errorf("reading topic %s: the consumer ended", topic)
			case each(m), end != follow && m.Offset+1 >= end:
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// liveAge is the age of a nodes record from which on its node does not count.
const liveAge = 10 * time.Second

// nodes reads who is live from the nodes topic.
func (c *topicsClient) nodes(ctx context.Context) ([]viewkeeper.Status, error) {
	end, err := c.admin.ReadableEnd(ctx, c.Nodes())
	if err != nil {
		return nil, kafkaFailure(err)
	}
	last := map[string]viewkeeper.Status{}
	err = c.read(ctx, c.Nodes(), sarama.OffsetOldest, end, func(m *sarama.ConsumerMessage) bool {
		addNode(last, m)
		return false
	})
	return live(last), kafkaFailure(err)
}

func addNode(last map[string]viewkeeper.Status, m *sarama.ConsumerMessage) {
	var st viewkeeper.Status
	if len(m.Value) == 0 || json.Unmarshal(m.Value, &st) != nil || st.Node != string(m.Key) {
		delete(last, string(m.Key))
		return
	}
	last[string(m.Key)] = st
}

func live(last map[string]viewkeeper.Status) []viewkeeper.Status {
	nodes := []viewkeeper.Status{}
	for st := range maps.Values(last) {
		if time.Since(st.At) < liveAge {
			nodes = append(nodes, st)
		}
	}
	slices.SortFunc(nodes, func(a, b viewkeeper.Status) int { return cmp.Compare(a.Node, b.Node) })
	return nodes
}

// waitFleet follows the nodes topic until every live node has a version. Nodes
// speak at least every 3 seconds, so that each record is a chance to look again.
func (c *topicsClient) waitFleet(ctx context.Context, v viewkeeper.Version) (reached, missing []string, err error) {
	last := map[string]viewkeeper.Status{}
	end, err := c.admin.ReadableEnd(ctx, c.Nodes())
	if err != nil {
		return []string{}, []string{}, kafkaFailure(err)
	}
	err = c.read(ctx, c.Nodes(), sarama.OffsetOldest, follow, func(m *sarama.ConsumerMessage) bool {
		addNode(last, m)
		reached, missing = []string{}, []string{}
		for _, st := range live(last) {
			if st.Version >= v {
				reached = append(reached, st.Node)
			} else {
				missing = append(missing, st.Node)
			}
		}
		return m.Offset+1 >= end && len(missing) == 0 && len(reached) > 0
	})
	if ctx.Err() != nil && reached == nil {
		reached, missing = []string{}, []string{"(no live node was seen)"}
	}
	return reached, missing, err
}

// decisions reads the whole decisions topic: for one version the highest epoch counts,
// and the order is by version. Offsets come again after topics adopt.
func (c *topicsClient) decisions(ctx context.Context) ([]viewkeeper.Decision, error) {
	end, err := c.admin.ReadableEnd(ctx, c.Decisions())
	if err != nil {
		return nil, kafkaFailure(err)
	}
	byVersion := map[viewkeeper.Version]viewkeeper.Decision{}
	err = c.read(ctx, c.Decisions(), sarama.OffsetOldest, end, func(m *sarama.ConsumerMessage) bool {
		if d, err := codec.DecodeDecision(m.Value); err == nil && d.Epoch >= byVersion[d.Version].Epoch {
			byVersion[d.Version] = d
		}
		return false
	})
	if err != nil {
		return nil, kafkaFailure(err)
	}
	return slices.SortedFunc(maps.Values(byVersion), func(a, b viewkeeper.Decision) int { return cmp.Compare(a.Version, b.Version) }), nil
}
