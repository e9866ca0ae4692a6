package duckdb

import (
	"bytes"
	"errors"
	"io"
	"time"
)

// patience is how long WriteTo waits for more before it has its writer send what that
// holds back. A short answer is whole by then, and goes out in one piece.
const patience = 200 * time.Microsecond

// flusher is a writer that may hold back what it was given until it is told to send it.
type flusher interface{ Flush() error }

// piece is some bytes of the stream, in the order of the stream.
type piece struct {
	bytes []byte
	last  bool // the stream is whole with it
}

// WriteTo writes the whole stream, one batch a call of w.Write. A writer with a method
// Flush() error is told to flush when the next one takes its time. The query may still
// hold its snapshot when WriteTo returns; Close ends it.
//
// The next batch is not fetched while this one is written: the engine's own threads go
// on filling its buffer of chunks meanwhile, and a caller that waits for that buffer
// takes a processor from them.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	pieces, free, stop := make(chan piece), make(chan []byte, 1), make(chan struct{})
	b.producer.Go(func() { b.produce(pieces, free, stop) })
	defer close(stop)
	flush, _ := w.(flusher)
	var total int64
	for {
		p, ok, err := await(pieces, flush)
		if err != nil {
			return total, err
		}
		if !ok {
			return total, b.failure()
		}
		n, err := w.Write(p.bytes)
		total += int64(n)
		if err != nil || p.last {
			return total, err
		}
		free <- p.bytes
	}
}

// await receives the next piece, and has the writer flush when that is not there soon.
func await(pieces <-chan piece, flush flusher) (p piece, ok bool, err error) {
	if flush != nil {
		soon := time.NewTimer(patience)
		defer soon.Stop()
		select {
		case p, ok = <-pieces:
			return p, ok, nil
		case <-soon.C:
		}
		if err := flush.Flush(); err != nil {
			return p, false, err
		}
	}
	p, ok = <-pieces
	return p, ok, nil
}

// produce sends the stream in pieces, and closes the channel behind the last one, or
// when there is an error or the writer stops. Each but the first waits until the memory
// of the one before has come back through free.
func (b *body) produce(pieces chan<- piece, free <-chan []byte, stop <-chan struct{}) {
	defer close(pieces)
	var memory []byte
	for {
		p, ok := b.next(memory)
		if !ok {
			return
		}
		select {
		case pieces <- p:
		case <-stop:
			return
		case <-b.released: // an error, or Close
			return
		}
		if p.last {
			return
		}
		select {
		case memory = <-free:
		case <-stop:
			return
		case <-b.released:
			return
		}
	}
}

// next encodes what is next; memory is for the piece after it.
func (b *body) next(memory []byte) (p piece, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.out.Len() == 0 && b.err == nil && !b.whole {
		b.fillLocked()
	}
	if b.out.Len() == 0 && !(b.err == nil || errors.Is(b.err, io.EOF)) {
		return piece{}, false
	}
	p = piece{bytes: b.out.Bytes(), last: b.whole}
	b.out = *bytes.NewBuffer(memory[:0])
	return p, true
}

// failure is why the stream is not whole.
func (b *body) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil || errors.Is(b.err, io.EOF) {
		return errBodyClosed
	}
	return b.err
}
