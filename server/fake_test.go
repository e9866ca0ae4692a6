package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// world is a catalog in memory that plays every part behind the door: what is
// emitted is decided at once by judge.
type world struct {
	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at each change
	status    viewkeeper.Status
	nodes     []viewkeeper.Status
	factory   *registry.Factory
	emitted   []viewkeeper.Submission
	decisions []viewkeeper.Decision
	seen      map[string]bool

	// judge decides what was emitted; nil leaves it undecided.
	judge func(viewkeeper.Submission) viewkeeper.Decision
	// emitErr is what Emit fails with.
	emitErr error
	// query answers queries.
	query func(context.Context, Query) (*Result, error)
}

func newWorld() *world {
	w := &world{
		changed: make(chan struct{}),
		status:  viewkeeper.Status{Node: "n1", Catalog: "test", Version: 7, Ready: true, Owner: "n1", Epoch: 1},
		seen:    map[string]bool{},
	}
	w.judge = func(s viewkeeper.Submission) viewkeeper.Decision {
		return viewkeeper.Decision{Verdict: viewkeeper.Accepted, Message: "created " + s.Key}
	}
	w.nodes = []viewkeeper.Status{{Node: "n1"}, {Node: "n2"}}
	return w
}

// change runs f under the lock and wakes everybody who waits.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// wait returns when done, asked under the lock, says so.
func (w *world) wait(ctx context.Context, done func() bool) error {
	for {
		w.mu.Lock()
		ok, changed := done(), w.changed
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *world) Status() viewkeeper.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

func (w *world) Current() *registry.Factory { return w.factory }

func (w *world) WaitVersion(ctx context.Context, v viewkeeper.Version) error {
	return w.wait(ctx, func() bool { return w.status.Version >= v })
}

func (w *world) WaitDecision(ctx context.Context, id string, _ int64) (d viewkeeper.Decision, err error) {
	err = w.wait(ctx, func() bool {
		for _, known := range w.decisions {
			if known.StatementID == id {
				d = known
				return true
			}
		}
		return false
	})
	return d, err
}

func (w *world) Decision(_ context.Context, id string) (*viewkeeper.Decision, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.decisions {
		if w.decisions[i].StatementID == id {
			return &w.decisions[i], true, nil
		}
	}
	return nil, w.seen[id], nil
}

func (w *world) Decisions(_ context.Context, q DecisionQuery) (DecisionPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	page := DecisionPage{CompleteFrom: 1}
	for _, d := range w.decisions {
		if d.Version <= q.Since {
			continue
		}
		if len(page.Decisions) == q.Limit {
			page.More = true
			break
		}
		page.Decisions = append(page.Decisions, d)
	}
	return page, nil
}

func (w *world) HistoryLength(viewkeeper.Name) int { return 1 }

func (w *world) Nodes() []viewkeeper.NodeStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return viewkeeper.CompareNodes(w.nodes, viewkeeper.FleetView{})
}

func (w *world) WaitFleet(ctx context.Context, v viewkeeper.Version) (reached, missing []string, err error) {
	err = w.wait(ctx, func() bool {
		reached, missing = nil, nil
		for _, n := range w.nodes {
			if n.Version >= v {
				reached = append(reached, n.Node)
			} else {
				missing = append(missing, n.Node)
			}
		}
		return len(missing) == 0
	})
	return reached, missing, err
}

func (w *world) Watch(ctx context.Context, from viewkeeper.Version, send func(Event) error) error {
	for {
		var next *viewkeeper.Decision
		err := w.wait(ctx, func() bool {
			for i := range w.decisions {
				if w.decisions[i].Version > from {
					next = &w.decisions[i]
					return true
				}
			}
			return false
		})
		if err != nil {
			return err
		}
		from = next.Version
		var names []viewkeeper.Name
		for _, c := range next.Changed {
			names = append(names, c.Name)
		}
		if err := send(Event{Version: next.Version, Changed: names}); err != nil {
			return err
		}
	}
}

func (w *world) Emit(_ context.Context, s viewkeeper.Submission) (int64, error) {
	if w.emitErr != nil {
		return 0, w.emitErr
	}
	var offset int64
	w.change(func() {
		offset = int64(len(w.emitted))
		w.emitted = append(w.emitted, s)
		w.seen[s.ID] = true
		if w.judge == nil {
			return
		}
		d := w.judge(s)
		d.StatementID, d.Offset, d.Version, d.SQL = s.ID, offset, viewkeeper.Version(offset+1), s.SQL
		w.decisions = append(w.decisions, d)
		w.status.Version = d.Version
	})
	return offset, nil
}

func (w *world) Check(_ context.Context, s viewkeeper.Submission) (viewkeeper.Decision, viewkeeper.Version, error) {
	if strings.Contains(s.SQL, "crash") {
		return viewkeeper.Decision{}, 0, &registry.LostError{Detail: "killed"}
	}
	return w.judge(s), w.Status().Version, nil
}

func (w *world) References(sql string) []string {
	if strings.Contains(sql, "vk.nodes") {
		return []string{"nodes"}
	}
	return nil
}

func (w *world) Query(ctx context.Context, q Query) (*Result, error) { return w.query(ctx, q) }

// start serves the world and gives the server's URL.
func (w *world) start(t *testing.T, adjust ...func(*Config)) string {
	t.Helper()
	cfg := Config{Node: w, Engine: w, Emitter: w, Checker: w, Log: slog.New(slog.DiscardHandler)}
	for _, f := range adjust {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// answer is a response with its body read.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

// field reads one field of a JSON object.
func (r reply) field(t *testing.T, name string) any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(r.body), &object); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return object[name]
}

func do(t *testing.T, method, url, body string, headers ...string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text), err}
}

func want(t *testing.T, r reply, status int, contains ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("status is %d, want %d: %s", r.status, status, r.body)
	}
	for _, s := range contains {
		if !strings.Contains(r.body, s) {
			t.Errorf("%q is not in %s", s, r.body)
		}
	}
	if status >= 400 && r.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("an error is %s: %s", r.header.Get("Content-Type"), r.body)
	}
	if r.header.Get(HeaderNode) == "" || r.header.Get(HeaderVersion) == "" {
		t.Error("the headers of every answer are missing")
	}
}

// arrowBody encodes rows of {"n": ...} as an Arrow IPC stream in two batches.
func arrowBody(t *testing.T, batches ...string) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
	for _, rows := range batches {
		batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

var resultColumns = []viewkeeper.Column{{Name: "n", Type: "BIGINT"}, {Name: "s", Type: "VARCHAR"}}

func fixed(body []byte) func(context.Context, Query) (*Result, error) {
	return func(context.Context, Query) (*Result, error) {
		return &Result{Version: 7, Columns: resultColumns, Body: io.NopCloser(bytes.NewReader(body))}, nil
	}
}

var errCut = errors.New("the engine was lost")
