package view

import (
	"errors"
	"sync"

	"github.com/lovoo/goka/storage"
)

// offsets is the storage that goka's View gets: it remembers the offset and keeps
// no value, since the fold has them. It outlives the views that use it, so that
// each goes on where the last one stopped.
type offsets struct {
	mu   sync.Mutex
	last int64
	any  bool
}

func (o *offsets) builder() storage.Builder {
	return func(string, int32) (storage.Storage, error) { return o, nil }
}

// GetOffset gives the offset of the last record that was taken.
func (o *offsets) GetOffset(def int64) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.any {
		return def, nil
	}
	return o.last, nil
}

// SetOffset never goes back: a view that was left behind may still be reading.
func (o *offsets) SetOffset(at int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.any || at > o.last {
		o.last, o.any = at, true
	}
	return nil
}

// The rest of goka's interface. Nothing is read through it.

func (*offsets) Open() error                { return nil }
func (*offsets) Close() error               { return nil }
func (*offsets) MarkRecovered() error       { return nil }
func (*offsets) Has(string) (bool, error)   { return false, nil }
func (*offsets) Get(string) ([]byte, error) { return nil, nil }
func (*offsets) Set(string, []byte) error   { return nil }
func (*offsets) Delete(string) error        { return nil }
func (*offsets) Iterator() (storage.Iterator, error) {
	return nil, errors.New("the values are in the registry, not in goka's view")
}
func (o *offsets) IteratorWithRange(_, _ []byte) (storage.Iterator, error) { return o.Iterator() }
