package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// The wire between the keeper and an engine: a unix stream socket, on which one call
// follows another when the last frame of that was read. Both ends are the same binary;
// the version in each frame only makes sure of it.
//
//	frame    kind byte | version byte (2) | length, 4 bytes, big endian | payload
//
//	kind     from     payload
//	C call   keeper   length of the method's name, 1 byte | name | JSON of the parameters
//	R reply  engine   JSON of the answer
//	D data   engine   bytes of a query's Arrow IPC stream, after its R
//	Z end    engine   empty; the stream is whole
//	E error  engine   JSON of wireError; instead of R, or in place of Z
//
//	call ends with   R for all methods but "query"; R D* Z for "query"; E at any time
//
// A keeper that closes its side, or only its sending half, cancels the call; the
// engine then ends it and closes the connection. A connection that ends within a call
// and without R, Z or E means that the engine is lost.

const wireVersion = 2

type frameKind byte

const (
	frameCall  frameKind = 'C'
	frameReply frameKind = 'R'
	frameData  frameKind = 'D'
	frameEnd   frameKind = 'Z'
	frameError frameKind = 'E'
)

const (
	headerSize = 6
	// maxMessage bounds a frame that is read whole. The largest is a whole catalog
	// being applied.
	maxMessage = 1 << 30
	// maxData is the longest data frame; a longer piece is cut up.
	maxData = 1 << 20
)

// call is what a call frame holds.
type call struct {
	method string
	params []byte // JSON
}

func encodeCall(method string, params []byte) []byte {
	b := make([]byte, 0, 1+len(method)+len(params))
	b = append(b, byte(len(method)))
	b = append(b, method...)
	return append(b, params...)
}

// decodeCall reads a call frame. One that can't be read is a call of no method, which is
// answered with an error.
func decodeCall(payload []byte) call {
	if len(payload) == 0 || len(payload) < 1+int(payload[0]) {
		return call{}
	}
	n := 1 + int(payload[0])
	return call{method: string(payload[1:n]), params: payload[n:]}
}

// putHeader writes a frame's header to the first bytes of b.
func putHeader(b []byte, kind frameKind, length int) {
	b[0], b[1] = byte(kind), wireVersion
	binary.BigEndian.PutUint32(b[2:], uint32(length))
}

// writeFrame writes a frame with one write.
func writeFrame(w io.Writer, kind frameKind, payload []byte) error {
	if len(payload) > maxMessage {
		return fmt.Errorf("engine: a message of %d bytes is over the limit of %d", len(payload), maxMessage)
	}
	b := make([]byte, headerSize+len(payload))
	putHeader(b, kind, len(payload))
	copy(b[headerSize:], payload)
	_, err := w.Write(b)
	return err
}

// writeJSON writes a frame with v's JSON.
func writeJSON(w io.Writer, kind frameKind, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("engine: %T can't be sent: %w", v, err)
	}
	return writeFrame(w, kind, payload)
}

// readHeader reads the start of a frame.
func readHeader(r io.Reader) (frameKind, int, error) {
	var b [headerSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, 0, err
	}
	if b[1] != wireVersion {
		return 0, 0, fmt.Errorf("engine: a frame of version %d instead of %d", b[1], wireVersion)
	}
	n := binary.BigEndian.Uint32(b[2:])
	if n > maxMessage {
		return 0, 0, fmt.Errorf("engine: a frame of %d bytes", n)
	}
	return frameKind(b[0]), int(n), nil
}

// readPayload reads the rest of a frame. It takes memory for what has come, not for
// what the header promises.
func readPayload(r io.Reader, n int) ([]byte, error) {
	const usual = 64 << 10
	if n <= usual {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	var b bytes.Buffer
	b.Grow(usual)
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// frameWriter writes the frames of a query's answer. Small ones wait for the next one,
// or for Flush, so that a short answer is one system call here, and one wake there.
type frameWriter struct {
	w    io.Writer
	held []byte // frames that wait
}

// smallFrame is the longest payload that is copied to wait with others.
const smallFrame = 16 << 10

// frame writes a frame, or has it wait.
func (f *frameWriter) frame(kind frameKind, payload []byte) error {
	if len(payload) > maxMessage {
		return fmt.Errorf("engine: a message of %d bytes is over the limit of %d", len(payload), maxMessage)
	}
	var header [headerSize]byte
	putHeader(header[:], kind, len(payload))
	f.held = append(f.held, header[:]...)
	if len(payload) <= smallFrame {
		if f.held = append(f.held, payload...); len(f.held) <= 2*smallFrame {
			return nil
		}
		return f.Flush()
	}
	pieces := net.Buffers{f.held, payload} // one system call on a socket
	_, err := pieces.WriteTo(f.w)
	f.held = f.held[:0]
	return err
}

// json is frame with v's JSON.
func (f *frameWriter) json(kind frameKind, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("engine: %T can't be sent: %w", v, err)
	}
	return f.frame(kind, payload)
}

// Write writes p as data frames.
func (f *frameWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		part := p[:min(len(p), maxData)]
		if err := f.frame(frameData, part); err != nil {
			return written, err
		}
		written += len(part)
		p = p[len(part):]
	}
	return written, nil
}

// Flush sends what waits.
func (f *frameWriter) Flush() error {
	if len(f.held) == 0 {
		return nil
	}
	_, err := f.w.Write(f.held)
	f.held = f.held[:0]
	return err
}

// wireError is an error as it crosses the wire. Kind tells which Go error it was.
type wireError struct {
	Kind    string          `json:"kind"`
	Code    viewkeeper.Code `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	At      int             `json:"at"`
	Name    viewkeeper.Name `json:"name,omitzero"`
	// Refused is that of a registry.ApplyError.
	Refused []registry.RefusedApply `json:"refused,omitempty"`
}

// The kinds of a wireError.
const (
	kindPlan     = "plan"     // *registry.PlanError
	kindRefusal  = "refusal"  // *viewkeeper.Error
	kindDeadline = "deadline" // context.DeadlineExceeded
	kindCanceled = "canceled" // context.Canceled
	kindClosed   = "closed"   // duckdb.ErrClosed
	kindRefused  = "refused"  // *registry.ApplyError
	kindLost     = "lost"     // *registry.LostError: the engine within the child
	kindOther    = "other"
)

func toWire(err error) wireError {
	var plan *registry.PlanError
	var refusal *viewkeeper.Error
	lost, refused := registry.AsLost(err), registry.AsRefused(err)
	switch {
	case lost != nil:
		return wireError{Kind: kindLost, Message: lost.Detail}
	case refused != nil:
		return wireError{Kind: kindRefused, Refused: refused.Refused}
	case errors.As(err, &plan):
		return wireError{Kind: kindPlan, Code: plan.Code, Message: plan.Message, At: plan.At}
	case errors.As(err, &refusal):
		return wireError{Kind: kindRefusal, Code: refusal.Code, Message: refusal.Message, At: refusal.Offset, Name: refusal.Name}
	case errors.Is(err, context.DeadlineExceeded):
		return wireError{Kind: kindDeadline}
	case errors.Is(err, context.Canceled):
		return wireError{Kind: kindCanceled}
	case errors.Is(err, duckdb.ErrClosed):
		return wireError{Kind: kindClosed}
	}
	return wireError{Kind: kindOther, Message: err.Error()}
}

func (e wireError) err() error {
	switch e.Kind {
	case kindPlan:
		return &registry.PlanError{Code: e.Code, Message: e.Message, At: e.At}
	case kindRefusal:
		return &viewkeeper.Error{Code: e.Code, Message: e.Message, Offset: e.At, Name: e.Name}
	case kindDeadline:
		return context.DeadlineExceeded
	case kindCanceled:
		return context.Canceled
	case kindClosed:
		return duckdb.ErrClosed
	case kindRefused:
		return &registry.ApplyError{Refused: e.Refused}
	case kindLost:
		return &registry.LostError{Detail: e.Message}
	}
	return errors.New(e.Message)
}

// readError reads the payload of an error frame.
func readError(payload []byte) error {
	var e wireError
	if err := json.Unmarshal(payload, &e); err != nil {
		return fmt.Errorf("engine: an error that can't be read: %w", err)
	}
	return e.err()
}
