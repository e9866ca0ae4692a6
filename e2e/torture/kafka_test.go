package torture

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/torture/history"
)

// producer is a client that knows nothing of viewkeeper, straight at the brokers.
func producer(seeds []string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProduceRequestTimeout(3*time.Second), kgo.RecordDeliveryTimeout(8*time.Second), kgo.ProducerBatchMaxBytes(8<<20),
		kgo.ProducerLinger(0))
}

// record is a statement as such a client writes it.
func record(topic string, s history.Statement) *kgo.Record {
	r := &kgo.Record{Topic: topic, Key: []byte(s.RecordKey())}
	if !s.Tombstone {
		r.Value = []byte(s.SQL())
	}
	if s.ID != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "id", Value: []byte(s.ID)})
	}
	if s.Expect != nil {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "expect-version", Value: strconv.AppendInt(nil, *s.Expect, 10)})
	}
	return r
}

// tail follows the decisions topic, for clients that wait there for an answer.
type tail struct {
	mu       sync.Mutex
	byID     map[string]history.Told // the first, ID_REUSED aside
	byOffset map[int64]history.Told
	news     chan struct{} // closed and replaced at each decision
}

func newTail() *tail {
	return &tail{byID: map[string]history.Told{}, byOffset: map[int64]history.Told{}, news: make(chan struct{})}
}

func (t *tail) run(ctx context.Context, seeds []string, topic string, seen func(history.Told)) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}),
		kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for _, r := range fetches.Records() {
			told, err := decision(r)
			if err != nil {
				return err
			}
			t.mu.Lock()
			if _, ok := t.byID[told.ID]; !ok && told.Code != "ID_REUSED" {
				t.byID[told.ID] = told
			}
			if _, ok := t.byOffset[told.Version-1]; !ok {
				t.byOffset[told.Version-1] = told
			}
			close(t.news)
			t.news = make(chan struct{})
			t.mu.Unlock()
			seen(told)
		}
	}
}

// wait gives the decision of an id, or of an offset when id is "".
func (t *tail) wait(ctx context.Context, id string, offset int64) (history.Told, bool) {
	for {
		t.mu.Lock()
		told, ok := t.byID[id]
		if id == "" {
			told, ok = t.byOffset[offset]
		}
		news := t.news
		t.mu.Unlock()
		if ok {
			return told, true
		}
		select {
		case <-ctx.Done():
			return told, false
		case <-news:
		}
	}
}

func decision(r *kgo.Record) (history.Told, error) {
	var d viewkeeper.Decision
	if err := json.Unmarshal(r.Value, &d); err != nil {
		return history.Told{}, fmt.Errorf("the decision at offset %d: %w", r.Offset, err)
	}
	return history.Tell(d), nil
}

// readAll reads a topic from its start to its end of now.
func readAll(ctx context.Context, seeds []string, topic string) ([]*kgo.Record, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	end, err := endOf(ctx, cl, topic)
	if err != nil {
		return nil, err
	}
	var out []*kgo.Record
	for int64(len(out)) < end && (len(out) == 0 || out[len(out)-1].Offset < end-1) {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("reading %s: %d of %d records: %w", topic, len(out), end, err)
		}
		out = append(out, fetches.Records()...)
	}
	return out, nil
}

// endOf asks for a topic's end offset.
func endOf(ctx context.Context, cl *kgo.Client, topic string) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Timestamp = -1
	part.CurrentLeaderEpoch = -1
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{part}}}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, err
	}
	p := resp.Topics[0].Partitions[0]
	return p.Offset, kerr.ErrorForCode(p.ErrorCode)
}

// topicID asks for a topic's id, as statement ids have it.
func topicID(ctx context.Context, cl *kgo.Client, topic string) (string, error) {
	m, err := metadata(ctx, cl, topic)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(m.TopicID[:]), nil
}

func metadata(ctx context.Context, cl *kgo.Client, topic string) (kmsg.MetadataResponseTopic, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr(topic)}}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return kmsg.MetadataResponseTopic{}, err
	}
	return resp.Topics[0], kerr.ErrorForCode(resp.Topics[0].ErrorCode)
}

// moveLeader makes another replica of a topic the preferred one and elects it.
func moveLeader(ctx context.Context, cl *kgo.Client, topic string) error {
	m, err := metadata(ctx, cl, topic)
	if err != nil {
		return err
	}
	replicas := m.Partitions[0].Replicas
	if len(replicas) < 2 {
		return nil
	}
	replicas = append(replicas[1:], replicas[0])
	alter := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	part := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	part.Replicas = replicas
	alter.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{part}}}
	alter.TimeoutMillis = 5000
	if _, err := alter.RequestWith(ctx, cl); err != nil {
		return err
	}
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	elect.TimeoutMillis = 5000
	_, err = elect.RequestWith(ctx, cl)
	return err
}

// asRecord takes from a record of the definitions topic what is checked.
func asRecord(r *kgo.Record, topicID string) (history.Record, error) {
	out := history.Record{Key: string(r.Key), SQL: string(r.Value), Tombstone: len(r.Value) == 0, ID: fmt.Sprintf("%s:%d", topicID, r.Offset)}
	for _, h := range r.Headers {
		switch h.Key {
		case "id":
			out.ID = string(h.Value)
		case "expect-version":
			n, err := strconv.ParseInt(string(h.Value), 10, 64)
			if err != nil {
				return out, err
			}
			out.Expect = &n
		}
	}
	return out, nil
}
