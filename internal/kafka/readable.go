package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// ReadableEnd is the offset behind the last record of the topic that a reader is
// given: the end to wait for. What lies between it and [Admin.EndOffset] is the marker
// of a transaction, or was compacted away, and never comes. It is 0 where nothing can be
// read at all.
func (a *Admin) ReadableEnd(ctx context.Context, topic string) (int64, error) {
	end, err := a.EndOffset(ctx, topic)
	if err != nil {
		return 0, err
	}
	begin, err := a.BeginOffset(ctx, topic)
	if err != nil {
		return 0, err
	}
	return a.readable(ctx, topic, begin, end)
}

// readable looks for the last record below end, in steps that grow backwards. Nearly
// always it is the first that is looked at.
func (a *Admin) readable(ctx context.Context, topic string, begin, end int64) (int64, error) {
	below := end
	for step := int64(1); below > begin; step *= 8 {
		from := max(begin, end-step)
		last, err := a.lastRecord(ctx, topic, from, below)
		if err != nil {
			return 0, fmt.Errorf("looking for the last record of topic %s: %w", topic, err)
		}
		if last >= 0 {
			return last + 1, nil
		}
		below = from
	}
	return 0, nil
}

// lastRecord gives the offset of the last record in [from, below), -1 for none.
func (a *Admin) lastRecord(ctx context.Context, topic string, from, below int64) (int64, error) {
	last := int64(-1)
	for at := from; at < below; {
		block, err := a.fetch(ctx, topic, at)
		if err != nil {
			return 0, err
		}
		next := at
		for _, set := range block.RecordsSet {
			if set.RecordBatch == nil {
				return 0, errors.New("the records are of a format before Kafka 0.11")
			}
			b := set.RecordBatch
			next = max(next, b.LastOffset()+1)
			if b.Control {
				continue
			}
			for _, r := range b.Records {
				if o := b.FirstOffset + r.OffsetDelta; o >= from && o < below {
					last = max(last, o)
				}
			}
		}
		if next == at {
			break // nothing is left up to the end
		}
		at = next
	}
	return last, nil
}

// fetchBytes is the most that one look fetches; the broker gives the first batch
// whole, however large it is.
const fetchBytes = 64 << 10

// fetch asks the leader for what lies at an offset and does not wait for more.
func (a *Admin) fetch(ctx context.Context, topic string, at int64) (*sarama.FetchResponseBlock, error) {
	return Bounded(ctx, func() (*sarama.FetchResponseBlock, error) {
		leader, err := a.client.Leader(topic, 0)
		if err != nil {
			return nil, err
		}
		req := &sarama.FetchRequest{Version: 11, MinBytes: 0, MaxBytes: fetchBytes, Isolation: sarama.ReadUncommitted, SessionEpoch: -1}
		const anyEpoch = -1
		req.AddBlock(topic, 0, at, fetchBytes, anyEpoch)
		// Over a connection of its own: while sarama opens a lost connection of the client
		// again, it writes what Fetch reads of it.
		b := sarama.NewBroker(leader.Addr())
		if err := b.Open(a.client.Config()); err != nil {
			return nil, err
		}
		defer b.Close()
		res, err := b.Fetch(req)
		if err != nil {
			return nil, err
		}
		block := res.GetBlock(topic, 0)
		switch {
		case block == nil:
			return nil, sarama.ErrIncompleteResponse
		case errors.Is(block.Err, sarama.ErrNotLeaderForPartition):
			_ = a.client.RefreshMetadata(topic) // for the next try; this one has failed
			return nil, block.Err
		case !errors.Is(block.Err, sarama.ErrNoError):
			return nil, block.Err
		}
		return block, nil
	}, nil)
}
