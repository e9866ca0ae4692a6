// Package testlog is the log of what a test runs, in the test's own output.
package testlog

import (
	"bytes"
	"io"
	"sync"
)

// T is what is needed of a *testing.T or *testing.B.
type T interface {
	Logf(format string, args ...any)
	Cleanup(func())
}

// New gives a writer to the test's log, for a log handler: each Write is a line. After
// the test's end it drops what comes: a goroutine that was left behind at a deadline
// says its last words then, and testing ends the whole process for a log after the end.
//
// Make it before what writes to it, so that the end of that is still logged. It is safe
// for concurrent use.
func New(t T) io.Writer {
	w := &writer{t: t}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over = true
	})
	return w
}

type writer struct {
	t    T
	mu   sync.Mutex
	over bool
}

// Write logs p. It never fails.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.t.Logf("%s", bytes.TrimSuffix(p, []byte("\n")))
	}
	return len(p), nil
}
