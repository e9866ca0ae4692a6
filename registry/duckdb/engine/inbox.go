package engine

import (
	"io"
	"net"
	"syscall"
)

// inbox reads a connection through a buffer, and tells whether there is more to read
// without waiting for it. The buffer grows when a long stream begins.
type inbox struct {
	conn *net.UnixConn
	buf  []byte
	r, w int // buf[r:w] is read from the connection, and not given yet
}

func newInbox(conn *net.UnixConn) *inbox {
	return &inbox{conn: conn, buf: make([]byte, headBuffer)}
}

// grow makes the buffer at least n bytes.
func (in *inbox) grow(n int) {
	if n <= len(in.buf) {
		return
	}
	larger := make([]byte, n)
	in.w = copy(larger, in.buf[in.r:in.w])
	in.buf, in.r = larger, 0
}

// shrink gives back what a long stream took.
func (in *inbox) shrink() {
	if len(in.buf) > headBuffer {
		in.buf, in.r, in.w = make([]byte, headBuffer), 0, 0
	}
}

// next waits for bytes, and gives at most n of those that are there. They are valid
// until the next call.
func (in *inbox) next(n int) ([]byte, error) {
	if in.r == in.w {
		in.r, in.w = 0, 0
		got, err := in.conn.Read(in.buf)
		if got == 0 {
			return nil, err
		}
		in.w = got
	}
	p := in.buf[in.r:min(in.w, in.r+n)]
	in.r += len(p)
	return p, nil
}

// Read is next with a copy.
func (in *inbox) Read(p []byte) (int, error) {
	if in.r == in.w && len(p) >= len(in.buf) {
		return in.conn.Read(p)
	}
	next, err := in.next(len(p))
	return copy(p, next), err
}

// ready reports whether a read would not wait: there are bytes, or there is the end.
func (in *inbox) ready() bool {
	if in.r < in.w {
		return true
	}
	raw, err := in.conn.SyscallConn()
	if err != nil {
		return true // the read says so too
	}
	var got int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			if got, failed = syscall.Read(int(fd), in.buf); failed != syscall.EINTR {
				return true
			}
		}
	})
	if err != nil {
		return true
	}
	in.r, in.w = 0, max(got, 0)
	return failed != syscall.EAGAIN
}

var _ io.Reader = (*inbox)(nil)
