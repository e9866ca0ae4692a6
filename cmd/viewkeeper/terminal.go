package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// isTerminal reports whether a stream is a terminal. The null device is a
// character device too, and nobody looks at it.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// progress shows on a terminal what is waited for, once that takes over a second,
// and takes the line away at the end.
type progress struct {
	out  io.Writer
	done chan struct{}
	once sync.Once
	gone sync.WaitGroup
}

// startProgress begins to watch over something. stop must be called.
func (a *app) startProgress(format string, args ...any) *progress {
	p := &progress{out: a.err, done: make(chan struct{})}
	if !isTerminal(a.err) {
		return p
	}
	what := fmt.Sprintf(format, args...)
	p.gone.Go(func() {
		start := time.Now()
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		shown := false
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(p.out, "\r\x1b[K%s, %d s", what, int(time.Since(start).Seconds()))
				shown = true
			case <-p.done:
				if shown {
					fmt.Fprint(p.out, "\r\x1b[K")
				}
				return
			}
		}
	})
	return p
}

// stop takes the line away. It may be called more than once.
func (p *progress) stop() {
	p.once.Do(func() { close(p.done) })
	p.gone.Wait()
}

// say writes a line above the one that is shown.
func (p *progress) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...) + "\n"
	if isTerminal(p.out) {
		line = "\r\x1b[K" + line
	}
	fmt.Fprint(p.out, line)
}
