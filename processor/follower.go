package processor

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// follower reads the table for the owner, from where goka's recovery ended. What it
// has read is what is certain: see the package comment.
type follower struct {
	// end asks for the table's end offset.
	end func(context.Context) (int64, error)
	// moved is called after each record, without the lock, with the offset below which
	// all is certain.
	moved func(certain int64)

	mu      sync.Mutex
	fold    *fold.Fold
	own     own
	epoch   viewkeeper.Epoch // the owner's
	node    string           // the owner's node id
	changed chan struct{}    // closed at the next record
}

func newFollower(f *fold.Fold, end func(context.Context) (int64, error)) *follower {
	return &follower{fold: f, own: own{}, end: end, moved: func(int64) {}, changed: make(chan struct{})}
}

// read takes one record of the table. It fails when the owner is no longer one.
func (f *follower) read(ctx context.Context, m *sarama.ConsumerMessage) error {
	f.mu.Lock()
	f.fold.Add(m.Offset, f.own.decode(m))
	f.fold.Take() // nobody is told here, and what is to be told would pile up
	gap, need := f.fold.NeedEnd()
	err := f.superseded()
	f.mu.Unlock()
	if err != nil {
		return err
	}
	if need {
		end, err := f.end(ctx)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.fold.EndIs(gap, end)
		f.mu.Unlock()
	}
	f.mu.Lock()
	certain := f.fold.Certain()
	close(f.changed)
	f.changed = make(chan struct{})
	moved := f.moved // which the claim sets while records come in already
	f.mu.Unlock()
	moved(certain)
	return nil
}

func tableHeaders(m *sarama.ConsumerMessage) []codec.Header {
	out := make([]codec.Header, 0, len(m.Headers))
	for _, h := range m.Headers {
		out = append(out, codec.Header{Key: string(h.Key), Value: h.Value})
	}
	return out
}

// writes tells the follower which records are about to be written here, by their bytes.
func (f *follower) writes(records []codec.Record, messages []*sarama.ProducerMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range records {
		f.own.expect(r, messages[i])
	}
}

// own holds the records that this process has written and not yet read back, by key: a
// record with the same bytes says the same, and is not decoded. Those of a batch are
// most of what an owner reads.
type own map[string]ownRecord

type ownRecord struct {
	value  []byte
	record codec.Record
}

// ownMost bounds what is kept of writes that are never read, as of one that failed.
const ownMost = 4096

func (o own) expect(r codec.Record, m *sarama.ProducerMessage) {
	value, ok := m.Value.(sarama.ByteEncoder)
	if !ok || len(o) >= ownMost {
		return
	}
	o[r.Key()] = ownRecord{value, r}
}

func (o own) decode(m *sarama.ConsumerMessage) codec.Record {
	key := string(m.Key)
	if w, ok := o[key]; ok {
		delete(o, key)
		if bytes.Equal(w.value, m.Value) {
			return w.record
		}
	}
	return codec.DecodeTable(key, m.Value, tableHeaders(m))
}

// superseded is rule 1: an owner that sees a later fence stops.
func (f *follower) superseded() error {
	if f.fold.Superseded(f.epoch) {
		fence, _ := f.fold.Fence()
		return &SupersededError{Own: f.epoch, Other: f.fold.Epoch(), Owner: fence.Owner, SameID: fence.Owner == f.node}
	}
	if f.fold.FenceLost() {
		return errFenceLost
	}
	if f.fold.Outdated() {
		return errPurged
	}
	if key := f.fold.NewerOwner(); key != "" {
		// The next life says so, and does not own.
		return fmt.Errorf("the record %s of the table is of a newer format than this program's; a newer owner may have written it", key)
	}
	return nil
}

// certain gives the offset below which it is known what counts.
func (f *follower) certain() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fold.Certain()
}

// with calls use with the fold under the lock.
func (f *follower) with(use func(*fold.Fold)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	use(f.fold)
}

// wait returns once ok says so of the fold, which it asks after each record.
func (f *follower) wait(ctx context.Context, ok func(*fold.Fold) bool) error {
	for {
		f.mu.Lock()
		good, changed := ok(f.fold), f.changed
		f.mu.Unlock()
		if good {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
