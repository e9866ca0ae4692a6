package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// Admin asks brokers about topics, offsets and groups, and creates topics. It is
// safe for use by several goroutines. After a lost broker it reconnects by itself.
type Admin struct {
	client sarama.Client
	admin  sarama.ClusterAdmin
}

// OpenAdmin connects. It needs one broker that answers.
func (s Settings) OpenAdmin(ctx context.Context) (*Admin, error) {
	return Bounded(ctx, func() (*Admin, error) {
		client, err := sarama.NewClient(s.Awake().Brokers, s.Sarama())
		if err != nil {
			return nil, fmt.Errorf("connecting to Kafka at %v: %w", s.Brokers, err)
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connecting to Kafka at %v: %w", s.Brokers, err), client.Close())
		}
		return &Admin{client, admin}, nil
	}, func(a *Admin) { _ = a.Close() })
}

// Close disconnects; calls under way fail.
func (a *Admin) Close() error { return a.admin.Close() }

// Bounded runs call in a goroutine of its own, and returns when it does or when
// ctx ends, whichever is first: sarama's calls take no context. An abandoned call
// ends by the net timeouts; late then gets its result, to close what was opened.
func Bounded[T any](ctx context.Context, call func() (T, error), late func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := call()
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		if late != nil {
			go func() {
				if a := <-done; a.err == nil {
					late(a.value)
				}
			}()
		}
		var none T
		return none, ctx.Err()
	}
}

// Topic is what the brokers' metadata says of a topic.
type Topic struct {
	// ID is in Kafka's own text form. Two topics of one name have different ids.
	ID          string
	Partitions  int
	Replication int
}

// Describe gives the topics that are there, by name. One that this client may not
// see fails the call with a KError.
func (a *Admin) Describe(ctx context.Context, topics ...string) (map[string]Topic, error) {
	meta, err := Bounded(ctx, func() ([]*sarama.TopicMetadata, error) { return a.admin.DescribeTopics(topics) }, nil)
	if err != nil {
		return nil, fmt.Errorf("describing the topics %v: %w", topics, err)
	}
	found := make(map[string]Topic, len(meta))
	for _, m := range meta {
		switch m.Err {
		case sarama.ErrNoError, sarama.ErrLeaderNotAvailable:
		case sarama.ErrUnknownTopicOrPartition:
			continue
		default:
			return nil, fmt.Errorf("describing the topic %s: %w", m.Name, m.Err)
		}
		t := Topic{ID: m.Uuid.String(), Partitions: len(m.Partitions)}
		for i, p := range m.Partitions {
			if n := len(p.Replicas); i == 0 || n < t.Replication {
				t.Replication = n
			}
		}
		found[m.Name] = t
	}
	return found, nil
}

// TopicID gives a topic's id, or a *MissingTopicError.
func (a *Admin) TopicID(ctx context.Context, topic string) (string, error) {
	found, err := a.Describe(ctx, topic)
	if err != nil {
		return "", err
	}
	t, ok := found[topic]
	if !ok {
		return "", &MissingTopicError{topic}
	}
	return t.ID, nil
}

// Cluster gives the cluster's id and the number of its brokers.
func (a *Admin) Cluster(ctx context.Context) (id string, brokers int, err error) {
	res, err := Bounded(ctx, func() (*sarama.MetadataResponse, error) {
		b, err := a.client.Controller()
		if err != nil {
			return nil, err
		}
		// Asking for no topic gives all of them in sarama, so one that need not exist
		// is named.
		return b.GetMetadata(sarama.NewMetadataRequest(a.client.Config().Version, []string{"viewkeeper"}))
	}, nil)
	if err != nil {
		return "", 0, fmt.Errorf("describing the cluster: %w", err)
	}
	if res.ClusterID != nil {
		id = *res.ClusterID
	}
	return id, len(res.Brokers), nil
}

// EndOffset is the offset that the topic's next record will get.
func (a *Admin) EndOffset(ctx context.Context, topic string) (int64, error) {
	return a.offset(ctx, topic, sarama.OffsetNewest)
}

// BeginOffset is the offset that the topic begins with. Compaction leaves it, a
// truncated prefix moves it.
func (a *Admin) BeginOffset(ctx context.Context, topic string) (int64, error) {
	return a.offset(ctx, topic, sarama.OffsetOldest)
}

// OffsetAt gives the offset of the first record that is not older than a time, and the
// end when there is none.
func (a *Admin) OffsetAt(ctx context.Context, topic string, at time.Time) (int64, error) {
	offset, err := a.offset(ctx, topic, at.UnixMilli())
	if err == nil && offset < 0 {
		return a.EndOffset(ctx, topic)
	}
	return offset, err
}

// EndOf gives a topic's id and end offset that belong together: the id is read
// before and after the end, since the topic may be made anew in between.
func (a *Admin) EndOf(ctx context.Context, topic string) (id string, end int64, err error) {
	for range 3 {
		before, err := a.TopicID(ctx, topic)
		if err != nil {
			return "", 0, err
		}
		if end, err = a.EndOffset(ctx, topic); err != nil {
			return "", 0, err
		}
		if id, err = a.TopicID(ctx, topic); err != nil {
			return "", 0, err
		}
		if before == id {
			return id, end, nil
		}
	}
	return "", 0, fmt.Errorf("the topic %s is made anew again and again while its end is asked for", topic)
}

func (a *Admin) offset(ctx context.Context, topic string, at int64) (int64, error) {
	n, err := Bounded(ctx, func() (int64, error) { return a.client.GetOffset(topic, 0, at) }, nil)
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		return 0, &MissingTopicError{topic}
	}
	if err != nil {
		return 0, fmt.Errorf("asking for an offset of topic %s: %w", topic, err)
	}
	return n, nil
}

// EndOffsets is EndOffset for several topics.
func (a *Admin) EndOffsets(ctx context.Context, topics ...string) (map[string]int64, error) {
	ends := make(map[string]int64, len(topics))
	for _, t := range topics {
		n, err := a.EndOffset(ctx, t)
		if err != nil {
			return nil, err
		}
		ends[t] = n
	}
	return ends, nil
}

// Committed gives the offset that a group has committed for a topic: the next one
// to read. ok is false when it has none.
func (a *Admin) Committed(ctx context.Context, group, topic string) (offset int64, ok bool, err error) {
	offset, _, ok, err = a.CommittedWith(ctx, group, topic)
	return offset, ok, err
}

// CommittedWith is Committed with the text that was committed beside the offset.
func (a *Admin) CommittedWith(ctx context.Context, group, topic string) (offset int64, metadata string, ok bool, err error) {
	res, err := Bounded(ctx, func() (*sarama.OffsetFetchResponse, error) {
		return a.admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
	}, nil)
	if errors.Is(err, sarama.ErrGroupIDNotFound) {
		return 0, "", false, nil
	}
	if err != nil {
		return 0, "", false, fmt.Errorf("asking for the committed offset of group %s: %w", group, err)
	}
	block := res.GetBlock(topic, 0)
	if block == nil {
		return 0, "", false, nil
	}
	if block.Err != sarama.ErrNoError {
		return 0, "", false, fmt.Errorf("asking for the committed offset of group %s: %w", group, block.Err)
	}
	return block.Offset, block.Metadata, block.Offset >= 0, nil
}
