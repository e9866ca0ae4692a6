package tablecopy

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/syndtr/goleveldb/leveldb/storage"
)

// ErrNone is returned when there is no copy.
var ErrNone = errors.New("there is no copy of the table")

// UnusableError is returned when there is a copy that must not be used: it is
// damaged, half-written, or of another format. [Remove] it.
type UnusableError struct{ Dir, Why string }

// Error says why.
func (e *UnusableError) Error() string {
	return fmt.Sprintf("the copy of the table in %s can't be used: %s", e.Dir, e.Why)
}

// InUseError is returned when another process has the copy open.
type InUseError struct {
	Dir string
	Err error
}

// Error says what to do about it.
func (e *InUseError) Error() string {
	return fmt.Sprintf("the copy of the table in %s is in use by another node; give each a directory of its own (--data-dir): %v", e.Dir, e.Err)
}

func (e *InUseError) Unwrap() error { return e.Err }

func isLocked(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, storage.ErrLocked)
}
