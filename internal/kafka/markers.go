package kafka

import (
	"context"
	"errors"
	"fmt"
)

// Markers counts the markers of transactions among the offsets [from, below) of a
// topic. A reader is given none of them: to it they look like records that are gone.
func (a *Admin) Markers(ctx context.Context, topic string, from, below int64) (n int64, err error) {
	for at := from; at < below; {
		block, err := a.fetch(ctx, topic, at)
		if err != nil {
			return n, fmt.Errorf("looking for markers of transactions in topic %s: %w", topic, err)
		}
		next := at
		for _, set := range block.RecordsSet {
			b := set.RecordBatch
			if b == nil {
				return n, errors.New("the records are of a format before Kafka 0.11")
			}
			next = max(next, b.LastOffset()+1)
			if b.Control {
				n += max(0, min(b.LastOffset()+1, below)-max(b.FirstOffset, from))
			}
		}
		if next == at {
			break // nothing is left up to the end
		}
		at = next
	}
	return n, nil
}
