package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/viewkeeper/viewkeeper/registry"
)

// roundTrip makes a call that has one reply on p, and reads the reply into result
// unless that is nil.
//
// At ctx's deadline p is killed; the error is then a LostError with Timeout. When
// ctx is cancelled p gets the grace to end the call, and is killed if it has not;
// the error is ctx's.
func (s *supervisor) roundTrip(ctx context.Context, p *process, method string, params, result any) error {
	l, err := s.send(ctx, p, method, params)
	if err != nil {
		return err
	}
	whole := false
	defer func() { p.putLink(l, whole) }()
	began := time.Now()
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			p.kill(&registry.LostError{Timeout: true, Detail: fmt.Sprintf("killed: %s was not done after %s", method, time.Since(began).Round(time.Millisecond))})
			return
		}
		s.cancelCall(l.conn)
	})
	kind, payload, err := readAnswer(l.in)
	untouched := stop() // else the connection is cut, or about to be
	if err != nil {
		return s.broken(ctx, p, err)
	}
	whole = untouched
	switch {
	case kind == frameError:
		return p.note(readError(payload))
	case kind != frameReply:
		whole = false
		return s.broken(ctx, p, fmt.Errorf("a frame %q instead of a reply", kind))
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(payload, result); err != nil {
		whole = false
		return s.broken(ctx, p, fmt.Errorf("a reply that can't be read: %w", err))
	}
	return nil
}

// link is a connection that takes one call after another: the next one when the last
// frame of the one before has been read.
type link struct {
	conn *net.UnixConn
	in   *inbox // over conn
}

// maxLinks is how many connections wait for calls. More calls at a time open their own.
const maxLinks = 16

// takeLink gives a connection that an earlier call left, or nil.
func (p *process) takeLink() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.links)
	if n == 0 {
		return nil
	}
	l := p.links[n-1]
	p.links = p.links[:n-1]
	return l
}

// putLink keeps a connection for the next call, while the process lives, if its last
// call ended with its last frame and was not cancelled before; else closes it.
func (p *process) putLink(l *link, whole bool) {
	if whole { // else somebody may still be reading
		l.in.shrink()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !whole || len(p.links) == maxLinks || p.lost != nil {
		l.conn.Close()
		return
	}
	p.links = append(p.links, l)
}

// send sends a call to p, over a connection that an earlier call has left or a new one.
func (s *supervisor) send(ctx context.Context, p *process, method string, params any) (*link, error) {
	l := p.takeLink()
	if l == nil {
		conn, err := s.dial(ctx, p)
		if err != nil {
			return nil, err
		}
		l = &link{conn: conn, in: newInbox(conn)}
	}
	if err := s.sendOn(ctx, p, l.conn, method, params); err != nil {
		p.putLink(l, false)
		return nil, err
	}
	return l, nil
}

// sendOn sends a call on a connection, which is of no more use after an error.
func (s *supervisor) sendOn(ctx context.Context, p *process, conn *net.UnixConn, method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("engine: the parameters of %q can't be sent: %w", method, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// A large call waits for the engine to read it.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(past) })
	defer stop()
	err = writeFrame(conn, frameCall, encodeCall(method, raw))
	if err == nil {
		return nil // a context that is over by now is seen by whoever waits for the answer
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.kill(&registry.LostError{Timeout: true, Detail: fmt.Sprintf("killed: it did not take a call of %q in time", method)})
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return s.broken(ctx, p, err)
}

// dial connects to p. On a unix socket that takes no time: it fails at once when
// nobody listens, which is a child's death, and when too many wait to be accepted,
// which passes.
func (s *supervisor) dial(ctx context.Context, p *process) (*net.UnixConn, error) {
	const pause = 5 * time.Millisecond
	for {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: p.socket, Net: "unix"})
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, syscall.EAGAIN):
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil, ctx.Err()
			}
		case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
			return nil, s.broken(ctx, p, err)
		default: // the keeper's own trouble, such as too many open files
			return nil, fmt.Errorf("engine: %w", err)
		}
	}
}

func readAnswer(conn io.Reader) (frameKind, []byte, error) {
	kind, n, err := readHeader(conn)
	if err != nil {
		return 0, nil, err
	}
	payload, err := readPayload(conn, n)
	return kind, payload, err
}

// cancelCall tells the engine that nobody waits for a call any more, and bounds the
// wait for its end.
func (s *supervisor) cancelCall(conn *net.UnixConn) {
	_ = conn.CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(s.cfg.Grace))
}

// broken is the error of a call whose connection ended before its answer did.
func (s *supervisor) broken(ctx context.Context, p *process, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		var timeout net.Error
		if errors.As(cause, &timeout) && timeout.Timeout() {
			p.kill(&registry.LostError{Detail: fmt.Sprintf("killed: a call that was cancelled did not end within %s", s.cfg.Grace)})
			<-p.exited
		}
		return ctx.Err()
	}
	lost := p.lostError(cause)
	if s.ctx.Err() != nil {
		return errClosed
	}
	return lost
}
