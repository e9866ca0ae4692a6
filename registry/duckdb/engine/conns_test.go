package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

func (p *process) keptForTest() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Calls that come one after the other share a connection, errors of theirs included;
// one that was ended before its last frame has its connection closed.
func TestCallsShareAConnection(t *testing.T) {
	s := startTestServer(t, nil)
	p := s.supervisor.currentForTest(t)
	for n := range 5 {
		if value, _ := ask(t, s, fmt.Sprint("SELECT ", n)); value != fmt.Sprint(n) {
			t.Fatal(value)
		}
		if _, err := s.Query(t.Context(), duckdb.QueryRequest{SQL: "SELECT nothing"}); err == nil {
			t.Fatal("a mistake was answered")
		}
		if err := s.Apply(t.Context(), 1, false, nil); err != nil {
			t.Fatal(err)
		}
		if n := p.keptForTest(); n != 1 {
			t.Fatalf("%d connections are kept", n)
		}
	}
	for range 5 {
		r, err := s.Query(t.Context(), duckdb.QueryRequest{SQL: "SELECT range FROM range(1000000000)"})
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if n := p.keptForTest(); n != 0 {
			t.Fatalf("%d connections are kept, and one of them is in the middle of an answer", n)
		}
	}
	var open []io.Closer
	for n := range maxLinks + 5 {
		r, err := s.Query(t.Context(), duckdb.QueryRequest{SQL: fmt.Sprint("SELECT ", n)})
		if err != nil {
			t.Fatal(err)
		}
		if value, err := oneValue(r.Body); err != nil || value != fmt.Sprint(n) {
			t.Fatal(value, err)
		}
		open = append(open, r.Body)
	}
	for _, body := range open {
		body.Close()
	}
	if n := p.keptForTest(); n > maxLinks {
		t.Errorf("%d connections are kept", n)
	}
}

// A cancelled context leaves no connection whose deadline is over.
func TestACancelledQueryLeavesNoConnection(t *testing.T) {
	s := startTestServer(t, nil)
	for n := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r, err := s.Query(ctx, duckdb.QueryRequest{SQL: fmt.Sprint("SELECT ", n)})
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		if n%2 == 0 {
			cancel()
		}
		<-ended
		cancel()
		if value, _ := ask(t, s, "SELECT 'next'"); value != "next" {
			t.Fatal(value)
		}
	}
	if n := s.Losses(); n != 0 {
		t.Errorf("%d engines were lost", n)
	}
}

// A client that reads nothing holds the engine up, and little memory.
func TestASlowReaderHoldsLittle(t *testing.T) {
	s := startTestServer(t, nil)
	child := s.supervisor.currentForTest(t)
	here, there := residentBytes(t, os.Getpid()), residentBytes(t, child.pid())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := s.Query(ctx, duckdb.QueryRequest{SQL: "SELECT range AS a, 'name ' || range AS b FROM range(1000000000)"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	// The engine is at rest when it uses no time any more.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for quiet, last := 0, ""; quiet < 6; {
		<-tick.C
		used := usedTime(t, child.pid())
		if quiet++; used != last {
			quiet, last = 0, used
		}
		if ctx.Err() != nil {
			t.Fatal("the engine goes on for a reader that does not read")
		}
	}
	if grown := residentBytes(t, child.pid()) - there; grown > 64<<20 {
		t.Errorf("the engine holds %d MiB more", grown>>20)
	}
	if grown := residentBytes(t, os.Getpid()) - here; grown > 64<<20 {
		t.Errorf("the keeper holds %d MiB more", grown>>20)
	}
}

// usedTime is the processor time of a process, as the system prints it.
func usedTime(t testing.TB, pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil && runtime.GOOS != "linux" {
		t.Skip("no /proc here:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	return fields[11] + "+" + fields[12]
}
