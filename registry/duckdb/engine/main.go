package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// The environment of a child, and what it inherits beyond the standard files.
const (
	envChild  = "VIEWKEEPER_ENGINE_CHILD"
	envFaults = "VIEWKEEPER_ENGINE_FAULTS"

	listenerFD = 3 // the listening socket
	lifeFD     = 4 // the life pipe: its end of file means that the keeper is gone
)

// acceptPause is the wait before another try when there are too many open files.
const acceptPause = 10 * time.Millisecond

// goMemory bounds the Go side of a child, softly. It holds one batch a query.
const goMemory = 256 << 20

// IsChild reports whether this process was started to be an engine.
func IsChild() bool { return os.Getenv(envChild) == "1" }

// Main is the whole life of an engine process; it gives the exit status. It
// returns only on an error, since a child ends by its keeper's hand or with it.
func Main() int {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		return 2
	}
	return 0
}

func run() error {
	// Ctrl-C in a terminal reaches the whole process group. It is the keeper that
	// decides when its engines end.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	debug.SetMemoryLimit(goMemory)
	protect()

	inherited := os.NewFile(listenerFD, "listener")
	life := os.NewFile(lifeFD, "life")
	if inherited == nil || life == nil {
		return errors.New("this is the engine of a viewkeeper process, which starts it; it can't be started by hand")
	}
	listener, err := net.FileListener(inherited)
	if err != nil {
		return fmt.Errorf("this is the engine of a viewkeeper process, which starts it; it can't be started by hand (%w)", err)
	}
	inherited.Close()
	go endWithKeeper(life, listener.Addr().String())

	c := &child{faults: os.Getenv(envFaults) == "1"}
	for {
		conn, err := listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			time.Sleep(acceptPause) // until some of the calls under way are done
			continue
		}
		if err != nil {
			return err
		}
		go c.serve(conn.(*net.UnixConn))
	}
}

// endWithKeeper ends this process when the keeper's end of the pipe is closed, by
// itself or because the keeper died, whatever the engine is doing. Pdeathsig would
// go by the thread that started the child, not by the process.
func endWithKeeper(life io.Reader, socket string) {
	_, _ = io.Copy(io.Discard, life)
	// A keeper that was killed could not tidy up. The folder stays while another
	// engine's socket is in it.
	_ = os.Remove(socket)
	_ = os.Remove(filepath.Dir(socket))
	os.Exit(0)
}

// child is what an engine process holds.
type child struct {
	faults bool

	// mu is held for writing while the engine opens, for reading by every call.
	mu      sync.RWMutex
	planner registry.Planner
	server  *duckdb.Server

	// planning makes calls of the planner one at a time: it serves one caller, and
	// a call that was cancelled may still be ending when the next one comes.
	planning sync.Mutex
	// trial is the number of the trial of the last Bind, under planning.
	trial int
}

// sendBuffer is the socket's buffer on the engine's side: with room for some
// batches the engine goes on while the keeper writes the last one to its client.
const sendBuffer = 4 << 20

// serve answers the calls of a connection, one after the other.
func (c *child) serve(conn *net.UnixConn) {
	_ = conn.SetWriteBuffer(sendBuffer)
	ctx, cancel := context.WithCancel(context.Background())
	calls := make(chan call)
	go func() {
		defer close(calls)
		// The keeper sends nothing during a call: what ends this then is that it closed
		// its side, which cancels the call, or that the connection is closed below.
		readCalls(ctx, conn, calls)
		cancel()
		_ = conn.SetWriteDeadline(past)
	}()
	for request := range calls {
		if !c.answer(ctx, conn, request) {
			break
		}
	}
	cancel()
	conn.Close()
	for range calls { // until the reader has ended
	}
}

// readCalls gives the calls of a connection to calls, until that or ctx ends.
func readCalls(ctx context.Context, conn io.Reader, calls chan<- call) {
	r := bufio.NewReaderSize(conn, headBuffer)
	for {
		kind, n, err := readHeader(r)
		if err != nil || kind != frameCall {
			return
		}
		payload, err := readPayload(r, n)
		if err != nil {
			return
		}
		select {
		case calls <- decodeCall(payload):
		case <-ctx.Done():
			return
		}
	}
}

// answer runs a call and writes all of its frames. It reports whether the connection
// may bring another one.
func (c *child) answer(ctx context.Context, conn *net.UnixConn, request call) bool {
	if request.method == methodQuery {
		return c.query(ctx, conn, request.params) == nil
	}
	reply, err := c.handle(ctx, request)
	if err == nil {
		err = writeJSON(conn, frameReply, reply)
	}
	return err == nil || writeJSON(conn, frameError, toWire(err)) == nil
}
