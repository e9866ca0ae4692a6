package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// CreateTopics makes those of a catalog's topics that are not there, with
// replication min(3, brokers) and min.insync.replicas 2 where that is 3. A topic
// that is there stays as it is; CheckTopics says what is wrong with it. It gives
// the names of the topics that it made.
func (a *Admin) CreateTopics(ctx context.Context, t Topics) ([]string, error) {
	_, brokers, err := a.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	found, err := a.Describe(ctx, t.All()...)
	if err != nil {
		return nil, err
	}
	var made []string
	for _, s := range t.specs() {
		if _, ok := found[s.topic]; ok {
			continue
		}
		detail := s.detail(min(3, brokers))
		_, err := Bounded(ctx, func() (struct{}, error) {
			return struct{}{}, a.admin.CreateTopic(s.topic, detail, false)
		}, nil)
		switch {
		case errors.Is(err, sarama.ErrTopicAlreadyExists): // another process was first
		case err != nil:
			return made, fmt.Errorf("creating the topic %s: %w", s.topic, err)
		default:
			made = append(made, s.topic)
		}
	}
	return made, a.awaitTopics(ctx, t)
}

func (s spec) detail(replication int) *sarama.TopicDetail {
	d := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: int16(replication), ConfigEntries: map[string]*string{}}
	for _, r := range s.rules {
		d.ConfigEntries[r.name] = &r.want
	}
	if replication >= 3 {
		two := "2"
		d.ConfigEntries["min.insync.replicas"] = &two
	}
	return d
}

// awaitTopics returns when every topic has a leader: right after their creation
// the brokers answer that they do not know them.
func (a *Admin) awaitTopics(ctx context.Context, t Topics) error {
	wait := newBackoff(firstWait, firstWait*4)
	for {
		_, err := a.EndOffsets(ctx, t.All()...)
		if err == nil || !Classify(err).Retry {
			return err
		}
		if werr := wait.sleep(ctx); werr != nil {
			return fmt.Errorf("waiting for the catalog's topics: %w", err)
		}
	}
}
