package server

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

func TestPathsAndMethods(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	want(t, do(t, "GET", url+"/nothing", ""), 404, "NOT_FOUND")
	r := do(t, "GET", url+"/v1/query", "")
	want(t, r, 405, "METHOD_NOT_ALLOWED")
	if got := r.header.Get("Allow"); got != "POST" {
		t.Errorf("Allow is %q", got)
	}
	if got := do(t, "DELETE", url+"/v1/status", "").header.Get("Allow"); got != "GET, HEAD" {
		t.Errorf("Allow is %q", got)
	}
	want(t, do(t, "HEAD", url+"/v1/status", ""), 200)
}

// A parameter that nobody knows is an error: a misspelt min_version would wait for
// nothing, and look as if it had.
func TestUnknownParameters(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	want(t, do(t, "GET", url+"/v1/status?min_verson=9", ""), 400, "BAD_REQUEST", "min_verson", "it takes min_version, timeout")
	want(t, do(t, "GET", url+"/v1/status?min_version=0&min_version=1", ""), 400, "given 2 times")
	want(t, do(t, "GET", url+"/v1/status?min_version=%zz", ""), 400, "BAD_REQUEST")
	want(t, do(t, "POST", url+"/v1/statements?wait_for=fleet", create), 400, "wait_for")
	want(t, do(t, "GET", url+"/v1/failures?limit=1", ""), 400, "limit", "it takes none")
	want(t, do(t, "POST", url+"/v1/query?min_version=1", `{"sql":"SELECT 1"}`, "Content-Type", TypeJSON), 400, "in the body")
	// Probes and proxies add what they like.
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		want(t, do(t, "GET", url+path+"?_=1", ""), 200)
	}
}

// What the standard library would answer with a page of HTML, or a redirect to one.
func TestUncleanPaths(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	for _, path := range []string{"/v1/statements/..", "/v1/statements/.", "/v1//status", "/v1/status/../nodes", "//"} {
		r := do(t, "GET", url+path, "")
		want(t, r, 404, "NOT_FOUND")
		if kind := r.header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("%s is answered as %s", path, kind)
		}
	}
	// An id may be any text.
	for _, id := range []string{"%2E%2E", "a%2Fb", "a%2F%2Fb"} {
		want(t, do(t, "GET", url+"/v1/statements/"+id, ""), 404, "no statement with id")
	}
}

func TestHealth(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	want(t, do(t, "GET", url+"/livez", ""), 200)
	want(t, do(t, "GET", url+"/readyz", ""), 200, `"ready":true`, `"reasons":[]`)
	w.change(func() { w.status.Ready, w.status.ReadyReasons = false, []string{viewkeeper.ReasonStale} })
	r := do(t, "GET", url+"/readyz", "")
	if r.status != 503 || !strings.Contains(r.body, `"reasons":["STALE"]`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	want(t, do(t, "GET", url+"/livez", ""), 200)
	want(t, do(t, "GET", url+"/v1/status", ""), 200, `"ready_reasons":["STALE"]`, `"degraded":[]`, `"broken_definitions":[]`)
	want(t, do(t, "GET", url+"/v1/nodes", ""), 200, `{"nodes":[{"node":"n1"`)
	want(t, do(t, "GET", url+"/metrics", ""), 200, `viewkeeper_http_requests_total{path="/livez",status="200"} 2`)
}

func TestDecisionsPage(t *testing.T) {
	w := newWorld()
	for v := range 3 {
		w.decisions = append(w.decisions, viewkeeper.Decision{Version: viewkeeper.Version(v + 1), SQL: create})
	}
	url := w.start(t)
	want(t, do(t, "GET", url+"/v1/decisions?limit=2", ""), 200, `"next":2`, `"complete_from":1`, `"sql":"CREATE`)
	want(t, do(t, "GET", url+"/v1/decisions?since=2", ""), 200, `"next":null`, `"version":3`)
	want(t, do(t, "GET", url+"/v1/decisions?since=x", ""), 400, "since")
	want(t, do(t, "GET", url+"/v1/decisions?limit=0", ""), 400, "limit")
	want(t, do(t, "GET", url+"/v1/decisions?name=a.b.c", ""), 400, "name")
}

func TestWatch(t *testing.T) {
	w := newWorld()
	w.decisions = []viewkeeper.Decision{{Version: 1, Changed: []viewkeeper.Change{{Name: viewkeeper.MakeName("", "a")}}}, {Version: 2}}
	url := w.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := watch(ctx, t, url+"/v1/watch?from=0")
	wantLine(t, lines, `data: {"version":1,"changed":["main.a"]}`)
	wantLine(t, lines, `data: {"version":2,"changed":[]}`)
	w.change(func() { w.decisions = append(w.decisions, viewkeeper.Decision{Version: 5}) })
	wantLine(t, lines, `data: {"version":5,"changed":[]}`)

	// A browser that connects again goes on behind the last event that it had.
	lines = watch(ctx, t, url+"/v1/watch?from=0", "Last-Event-ID", "2")
	wantLine(t, lines, `data: {"version":5,"changed":[]}`)
	want(t, do(t, "GET", url+"/v1/watch?from=x", ""), 400, "from")
}

func watch(ctx context.Context, t *testing.T, url string, headers ...string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
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
	t.Cleanup(func() { resp.Body.Close() })
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the events are %s", got)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(resp.Body); scan.Scan(); {
			if strings.HasPrefix(scan.Text(), "data:") {
				select {
				case lines <- scan.Text():
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return lines
}

func wantLine(t *testing.T, lines <-chan string, line string) {
	t.Helper()
	select {
	case got := <-lines:
		if got != line {
			t.Errorf("got %s, want %s", got, line)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s did not come", line)
	}
}

// A stop ends endless answers at once, and the server returns without an error.
func TestServeStops(t *testing.T) {
	w := newWorld()
	s, err := New(Config{Node: w, Engine: w, Emitter: w, Checker: w, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	lines := watch(t.Context(), t, "http://"+l.Addr().String()+"/v1/watch")
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server did not stop")
	}
	for range lines {
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	w := newWorld()
	w.query = func(context.Context, Query) (*Result, error) { panic("a mistake") }
	r := do(t, "POST", w.start(t)+"/v1/query", "SELECT 1")
	want(t, r, 500, "INTERNAL")
	if strings.Contains(r.body, "a mistake") {
		t.Errorf("internals are shown: %s", r.body)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	_, err := New(Config{})
	for _, field := range []string{"Node", "Engine", "Checker"} {
		if err == nil || !strings.Contains(err.Error(), "Config."+field) {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
}

func TestLike(t *testing.T) {
	for pattern, names := range map[string]string{
		"%":        "main.daily s.weekly",
		"da%":      "main.daily",
		"main.%":   "main.daily",
		"DAILY":    "main.daily",
		"%.weekly": "s.weekly",
		"weekly":   "",
		"_aily":    "main.daily",
		"d%i%y":    "main.daily",
	} {
		var got []string
		for _, n := range []viewkeeper.Name{viewkeeper.MakeName("", "daily"), viewkeeper.MakeName("s", "weekly")} {
			if likeName(pattern, n) {
				got = append(got, n.String())
			}
		}
		if strings.Join(got, " ") != names {
			t.Errorf("%s matches %v, want %s", pattern, got, names)
		}
	}
}
