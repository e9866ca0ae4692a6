package restore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// Log is the table's topic, to be written and read.
type Log interface {
	// Write writes records and returns once all are acked, with their offsets. After an
	// error nobody knows which are there.
	Write(ctx context.Context, records []Record) ([]int64, error)
	// Read gives the records from one offset up to before another.
	Read(ctx context.Context, from, to int64, each func(offset int64, key string, value []byte, headers []codec.Header)) error
}

// Record is a record of the table; a nil Value is a tombstone.
type Record struct {
	Key     string
	Value   []byte
	Headers []codec.Header
}

// ErrTakenOver is returned when an owner took over while the restore wrote. Nothing of
// it counts; plan again.
var ErrTakenOver = errors.New("an owner took over while the table was written, and nothing was changed; stop the owners, or try again")

var errOffset = errors.New("the record is written, and the broker did not say at which offset, so that nothing more can be said of it; run the restore again")

// TooLargeError is returned when what would change in a table that holds a catalog does
// not fit one record, so that it can't be changed at once.
type TooLargeError struct{ Bytes, Limit int }

// Error says what to do.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("what would change takes %d bytes, and a record holds %d, so that it can't be changed at once in a table that holds a catalog: delete the topic, make it anew with viewkeeper topics create, and restore again", e.Bytes, e.Limit)
}

// Write carries a plan out, as owner, and reads back what it wrote. limit is the most
// bytes that a record may have. It gives the epoch of what it wrote. After any error it is
// safe to plan and write again.
func (p *Plan) Write(ctx context.Context, k *Known, log Log, owner string, at time.Time, limit int) (viewkeeper.Epoch, error) {
	f := k.Table.Fold
	fence := &codec.Fence{Nonce: nonce(), EpochBase: p.Commit.EpochBase, Owner: owner, At: at}
	whole, err := p.whole(limit)
	if err != nil {
		return 0, err
	}
	offsets, err := log.Write(ctx, []Record{record(fence)})
	if err != nil {
		return 0, fmt.Errorf("writing the fence: %w", err)
	}
	if offsets[0] == offsetUnknown {
		return 0, errOffset
	}
	epoch := fold.FenceEpoch(fence, offsets[0])

	commit := p.Commit.WithEpoch(epoch)
	commit.Owner, commit.At, commit.Rows = owner, at, nil
	rows := make([]Record, len(p.Rows))
	for i, row := range p.Rows {
		row.Epoch = epoch
		rows[i] = record(codec.Row{Row: row})
		if whole {
			commit.Rows = append(commit.Rows, row)
		}
	}
	var first, last []Record
	for _, slot := range p.Slots {
		again := *slot
		again.Epoch = epoch
		first = append(first, record(&again))
	}
	if whole {
		last = slices.Clip(rows)
	} else {
		first = append(first, rows...)
	}
	written := map[string]bool{codec.KeyCommit: true}
	for _, r := range slices.Concat(first, last) {
		written[r.Key] = true
	}
	for _, r := range f.Heal(epoch) {
		if !written[r.Key()] {
			written[r.Key()] = true
			last = append(last, record(r))
		}
	}
	for _, key := range p.Remove {
		if !written[key] {
			last = append(last, Record{Key: key})
		}
	}
	if _, err := log.Write(ctx, first); err != nil {
		return 0, fmt.Errorf("writing what comes before the commit row: %w", err)
	}
	if offsets, err = log.Write(ctx, []Record{record(commit)}); err != nil {
		return 0, fmt.Errorf("writing the commit row: %w", err)
	}
	if _, err := log.Write(ctx, last); err != nil {
		return 0, fmt.Errorf("the catalog is put back, and an owner will complete it; writing its rows: %w", err)
	}
	if offsets[0] == offsetUnknown {
		return 0, errOffset
	}
	return epoch, p.check(ctx, f, log, offsets[0])
}

// whole reports whether the rows fit into the commit row.
func (p *Plan) whole(limit int) (bool, error) {
	c := p.Commit.WithEpoch(^viewkeeper.Epoch(0))
	c.Rows = p.Rows
	_, value := codec.EncodeRecord(c)
	const head = 1 << 10 // owner, time, key
	if len(value)+head <= limit {
		return true, nil
	}
	if p.InPlace {
		return false, &TooLargeError{len(value), limit}
	}
	return false, nil
}

// check reads up to the commit row: it counts unless an owner's fence came before it.
func (p *Plan) check(ctx context.Context, f *fold.Fold, log Log, at int64) error {
	counts := false
	err := log.Read(ctx, f.Next(), at+1, func(offset int64, key string, value []byte, headers []codec.Header) {
		if c := f.Add(offset, codec.DecodeTable(key, value, headers)); offset == at {
			counts = c
		}
	})
	if err != nil {
		return fmt.Errorf("reading back what was written: %w", err)
	}
	if !counts {
		return ErrTakenOver
	}
	return nil
}

func record(r codec.Record) Record {
	key, value := codec.EncodeRecord(r)
	return Record{key, value, codec.TableHeaders(r)}
}

func nonce() string {
	var b [16]byte
	// crypto/rand never fails; it ends the process instead.
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
