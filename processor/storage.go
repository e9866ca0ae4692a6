package processor

import (
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// tableStorage is the storage that goka recovers the table into. It keeps the fold
// and no values: nothing reads the table through goka, and what the catalog is can
// only be said with the offsets, which goka's own storages do not keep. (goka's
// memory storage is quadratic besides, and its leveldb one shows rows that never
// became durable.)
type tableStorage struct {
	fold   *fold.Fold
	offset int64
	stored bool
}

// update is goka's update callback: each record of the recovery, with its offset.
func (s *tableStorage) update(ctx goka.UpdateContext, _ storage.Storage, key string, value []byte) error {
	s.fold.Add(ctx.Offset(), codec.DecodeTable(key, value, headers(ctx.Headers())))
	return nil
}

func headers(of goka.Headers) []codec.Header {
	out := make([]codec.Header, 0, len(of))
	for key, value := range of {
		out = append(out, codec.Header{Key: key, Value: value})
	}
	return out
}

// GetOffset gives the last offset that was recovered.
func (s *tableStorage) GetOffset(def int64) (int64, error) {
	if !s.stored {
		return def, nil
	}
	return s.offset, nil
}

// SetOffset is called by goka after each update.
func (s *tableStorage) SetOffset(offset int64) error {
	s.offset, s.stored = offset, true
	return nil
}

// The rest is what goka's interface asks for and the processor never uses.

func (s *tableStorage) Open() error                         { return nil }
func (s *tableStorage) Close() error                        { return nil }
func (s *tableStorage) MarkRecovered() error                { return nil } // may come twice
func (s *tableStorage) Has(string) (bool, error)            { return false, nil }
func (s *tableStorage) Get(string) ([]byte, error)          { return nil, nil }
func (s *tableStorage) Set(string, []byte) error            { return errGokaWrites }
func (s *tableStorage) Delete(string) error                 { return errGokaWrites }
func (s *tableStorage) Iterator() (storage.Iterator, error) { return storage.NewMemory().Iterator() }
func (s *tableStorage) IteratorWithRange(_, _ []byte) (storage.Iterator, error) {
	return s.Iterator()
}
