package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

func TestQueryFormats(t *testing.T) {
	w := newWorld()
	body := arrowBody(t, `[{"n":1,"s":"a,b"},{"n":null,"s":""}]`, `[]`, `[{"n":9007199254740993,"s":null}]`)
	w.query = fixed(body)
	url := w.start(t)
	for accept, text := range map[string]string{
		"": `{"columns":[{"name":"n","type":"BIGINT"},{"name":"s","type":"VARCHAR"}],"rows":[` + "\n" +
			`[1,"a,b"],` + "\n" + `[null,""],` + "\n" + `["9007199254740993",null]` + "\n]}\n",
		TypeNDJSON: `{"n":1,"s":"a,b"}` + "\n" + `{"n":null,"s":""}` + "\n" + `{"n":"9007199254740993","s":null}` + "\n",
		TypeCSV:    "n,s\n1,\"a,b\"\n,\"\"\n9007199254740993,\n",
		TypeArrow:  string(body),
		"text/html, application/json;q=0.1, text/csv;q=0.9": "n,s\n1,\"a,b\"\n,\"\"\n9007199254740993,\n",
	} {
		r := do(t, "POST", url+"/v1/query", "SELECT n, s FROM v", "Accept", accept)
		want(t, r, 200)
		if r.body != text {
			t.Errorf("as %q:\n%s\nwant:\n%s", accept, r.body, text)
		}
		if got := r.header.Get(HeaderVersion); got != "7" {
			t.Errorf("%s is %s, not that of the factory that answered", HeaderVersion, got)
		}
	}
	want(t, do(t, "POST", url+"/v1/query", "SELECT 1", "Accept", "image/png"), 406, "NOT_ACCEPTABLE")
}

func TestQueryWithoutRows(t *testing.T) {
	w := newWorld()
	w.query = fixed(arrowBody(t))
	url := w.start(t)
	for accept, text := range map[string]string{
		TypeJSON:   `"rows":[` + "\n\n]}\n",
		TypeNDJSON: "",
		TypeCSV:    "n,s\n",
	} {
		r := do(t, "POST", url+"/v1/query", "SELECT n, s FROM v", "Accept", accept)
		if want(t, r, 200, text); accept != TypeJSON && r.body != text {
			t.Errorf("as %s: %q", accept, r.body)
		}
	}
}

func TestQueryIsGivenWhatItAsksFor(t *testing.T) {
	w := newWorld()
	var got Query
	w.query = func(_ context.Context, q Query) (*Result, error) {
		got = q
		return fixed(arrowBody(t))(context.Background(), q)
	}
	want(t, do(t, "POST", w.start(t)+"/v1/query", `{"sql":"FROM vk.nodes","min_version":7,"timeout":"5s"}`, "Content-Type", TypeJSON), 200)
	if got.SQL != "FROM vk.nodes" || got.Timeout <= 0 || got.Timeout > 5e9 {
		t.Errorf("asked %+v", got)
	}
	if !strings.Contains(string(got.VK["nodes"]), `"node":"n2"`) {
		t.Errorf("vk.nodes is %s", got.VK["nodes"])
	}
}

func TestQueryProblems(t *testing.T) {
	lost := func(timeout bool) func(context.Context, Query) (*Result, error) {
		return func(context.Context, Query) (*Result, error) {
			return nil, &registry.LostError{Timeout: timeout, Detail: "killed"}
		}
	}
	for _, c := range []struct {
		name   string
		world  func(*world)
		body   string
		status int
		in     []string
	}{
		{"empty", nil, `{"sql":""}`, 400, []string{"BAD_REQUEST"}},
		{"DDL", nil, `{"sql":"-- x\ncreate view v as select 1"}`, 400, []string{"/v1/statements"}},
		{"unknown field", nil, `{"sql":"SELECT 1","minversion":1}`, 400, []string{"BAD_REQUEST", "min_version"}},
		{"SQL error", func(w *world) {
			w.query = func(context.Context, Query) (*Result, error) {
				return nil, &registry.PlanError{Code: viewkeeper.CodeBind, Message: "column x not found", At: 7}
			}
		}, `{"sql":"SELECT x"}`, 400, []string{`"code":"BIND"`, `"column":8`}},
		{"engine killed", func(w *world) { w.query = lost(false) }, `{"sql":"SELECT 1"}`, 503, []string{"ENGINE_KILLED"}},
		{"engine timeout", func(w *world) { w.query = lost(true) }, `{"sql":"SELECT 1"}`, 504, []string{"ENGINE_TIMEOUT"}},
		{"engine's own", func(w *world) {
			w.query = func(context.Context, Query) (*Result, error) { return nil, errors.New("no socket") }
		}, `{"sql":"SELECT 1"}`, 500, []string{"INTERNAL"}},
		{"version not reached", nil, `{"sql":"SELECT 1","min_version":9,"timeout":"1ms"}`, 504, []string{"version 9"}},
		{"time limit", func(w *world) {
			w.query = func(ctx context.Context, _ Query) (*Result, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, `{"sql":"SELECT 1","timeout":0.001}`, 504, []string{"TIMEOUT"}},
		{"not ready", func(w *world) {
			w.status.Ready, w.status.ReadyReasons = false, []string{viewkeeper.ReasonBuilding}
		}, `{"sql":"SELECT 1"}`, 503, []string{"NOT_READY", "BUILDING"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			if c.world != nil {
				c.world(w)
			}
			want(t, do(t, "POST", w.start(t)+"/v1/query", c.body, "Content-Type", TypeJSON), c.status, c.in...)
		})
	}
}

// A node that has only grown stale answers from what it has, and says how old it is.
func TestQueryOnStaleNode(t *testing.T) {
	w := newWorld()
	w.status.Ready, w.status.ReadyReasons, w.status.StaleFor = false, []string{viewkeeper.ReasonStale}, 400
	w.query = fixed(arrowBody(t))
	r := do(t, "POST", w.start(t)+"/v1/query", "SELECT 1")
	want(t, r, 200)
	if got := r.header.Get(HeaderStaleFor); got != "400.0" {
		t.Errorf("%s is %q", HeaderStaleFor, got)
	}
}

// What the engine has and the node has not yet is not told: it may be lost with the
// engine.
func TestQueryIsNeverAheadOfItsNode(t *testing.T) {
	w := newWorld()
	asked := make(chan struct{}, 1)
	w.query = func(ctx context.Context, q Query) (*Result, error) {
		r, err := fixed(arrowBody(t))(ctx, q)
		r.Version = 8
		asked <- struct{}{}
		return r, err
	}
	url := w.start(t)
	want(t, do(t, "POST", url+"/v1/query?timeout=50ms", "SELECT 1"), 504, "TIMEOUT", "the answer is of version 8", "it is at 7")
	<-asked
	answer := make(chan reply)
	go func() { answer <- do(t, "POST", url+"/v1/query", "SELECT 1") }()
	<-asked
	select {
	case r := <-answer:
		t.Errorf("the node is at 7, and answered %s", r.header.Get(HeaderVersion))
	default:
	}
	w.change(func() { w.status.Version = 8 })
	r := <-answer
	want(t, r, 200)
	if got := r.header.Get(HeaderVersion); got != "8" {
		t.Errorf("the answer is of version %s", got)
	}
}

// cutReader gives the beginning of a body and then an error.
type cutReader struct {
	io.Reader
	closed chan struct{}
}

func (c *cutReader) Close() error { close(c.closed); return nil }

func TestQueryCutInTheMiddle(t *testing.T) {
	whole := arrowBody(t, `[{"n":1,"s":"a"}]`, `[{"n":2,"s":"b"}]`)
	for _, accept := range []string{TypeJSON, TypeNDJSON, TypeCSV, TypeArrow} {
		// Cut inside the last batch, and right before the end of the stream, where
		// an Arrow reader alone would see nothing wrong.
		for _, size := range []int{len(whole) - 100, len(whole) - 8} {
			w := newWorld()
			body := &cutReader{Reader: io.MultiReader(bytes.NewReader(whole[:size]), failingReader{}), closed: make(chan struct{})}
			w.query = func(context.Context, Query) (*Result, error) {
				return &Result{Columns: resultColumns, Body: body}, nil
			}
			ctx := t.Context()
			req, err := http.NewRequestWithContext(ctx, "POST", w.start(t)+"/v1/query", strings.NewReader("SELECT 1"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", accept)
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Errorf("%s cut at %d of %d looked whole", accept, size, len(whole))
			}
			select {
			case <-body.closed:
			case <-time.After(time.Minute):
				t.Errorf("%s: the result was not closed", accept)
			}
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errCut }

// A client that goes ends its query.
func TestQueryClientGoes(t *testing.T) {
	w := newWorld()
	started, ended := make(chan struct{}), make(chan struct{})
	w.query = func(ctx context.Context, _ Query) (*Result, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	url := w.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/query", strings.NewReader("SELECT 1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-ended
}

func TestArrowPassesThrough(t *testing.T) {
	w := newWorld()
	w.query = fixed(arrowBody(t, `[{"n":1,"s":"a"}]`))
	r := do(t, "POST", w.start(t)+"/v1/query", "SELECT 1", "Accept", TypeArrow)
	reader, err := ipc.NewReader(strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if !reader.Next() || reader.RecordBatch().NumRows() != 1 {
		t.Error("the row is not there")
	}
}

// A node runs so many queries at one time; some wait for their turn, in their time,
// and the rest is told to come again.
func TestQueriesTakeTurns(t *testing.T) {
	w := newWorld()
	started, release := make(chan struct{}, 100), make(chan struct{})
	w.query = func(ctx context.Context, q Query) (*Result, error) {
		started <- struct{}{}
		<-release
		return fixed(arrowBody(t))(ctx, q)
	}
	url := w.start(t, func(c *Config) { c.MaxQueries = 2 })
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free) // before the server's, which waits for its requests
	const all = 2 + 2*waitingFor
	answers := make(chan reply, all)
	ask := func() {
		for {
			// One of those below may have had the last place in the queue.
			if r := do(t, "POST", url+"/v1/query", "SELECT 1"); r.status != 503 {
				answers <- r
				return
			}
		}
	}
	go ask()
	go ask()
	<-started
	<-started
	want(t, do(t, "POST", url+"/v1/query?timeout=10ms", "SELECT 1"), 503, "TOO_BUSY", "2 queries run on this node", "was not run")
	for range all - 2 {
		go ask()
	}
	// The queue is full when the next one is refused; until then they are on their way.
	for {
		r := do(t, "POST", url+"/v1/query?timeout=50ms", "SELECT 1")
		want(t, r, 503, "TOO_BUSY")
		if r.header.Get("Retry-After") == "" {
			t.Error("nothing says when to come again")
		}
		if strings.Contains(r.body, "16 wait") {
			break
		}
	}
	if n := len(started); n > 0 {
		t.Errorf("%d more ran", n)
	}
	free()
	for range all {
		if r := <-answers; r.status != 200 {
			t.Errorf("%d: %s", r.status, r.body)
		}
	}
	if n := len(started); n != all-2 {
		t.Errorf("%d of those that waited ran", n)
	}
}
