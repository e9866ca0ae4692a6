package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

const create = "CREATE VIEW daily AS SELECT 1 AS n"

func TestStatementAccepted(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	r := do(t, "POST", url+"/v1/statements", create, "X-Author", "jane@example.org")
	want(t, r, 200, `"verdict":"accepted"`, `"version":1`, `"missing":[]`, `"reached":["n1"]`, `"broken":[]`)
	if strings.Contains(r.body, `"sql"`) {
		t.Errorf("the answer holds the text: %s", r.body)
	}
	if got := r.header.Get(HeaderVersion); got != "1" {
		t.Errorf("%s is %s after the wait", HeaderVersion, got)
	}
	s := w.emitted[0]
	if s.Key != "main.daily" || s.Author != "jane@example.org" || len(s.ID) != 32 || s.SQL != create {
		t.Errorf("emitted %+v", s)
	}
}

func TestStatementAsJSON(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	body := fmt.Sprintf(`{"sql":%q,"id":"x-1","expect_version":0,"reason":"because"}`, create)
	want(t, do(t, "POST", url+"/v1/statements?wait=decided", body, "Content-Type", "application/json; charset=utf-8"), 200, `"statement_id":"x-1"`)
	s := w.emitted[0]
	if s.ID != "x-1" || s.Reason != "because" || s.ExpectVersion == nil || *s.ExpectVersion != 0 {
		t.Errorf("emitted %+v", s)
	}
}

// curl -d calls everything a form. A body that begins with a brace can be no SQL, and
// read as SQL it would leave a refused record.
func TestBodyWithoutAContentType(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	want(t, do(t, "POST", url+"/v1/statements?wait=decided", fmt.Sprintf("\n {\"sql\":%q,\"id\":\"x-1\"}", create), form...), 200, `"statement_id":"x-1"`)
	want(t, do(t, "POST", url+"/v1/statements?wait=decided", create, form...), 200, `"verdict":"accepted"`)
	for _, s := range w.emitted {
		if s.SQL != create {
			t.Errorf("emitted %+v", s)
		}
	}
	for _, path := range []string{"/v1/statements", "/v1/check", "/v1/query"} {
		want(t, do(t, "POST", url+path, `{"sqll":"SELECT 1"}`, form...), 400, "BAD_REQUEST", "sqll")
		want(t, do(t, "POST", url+path, `{"sql":1}`, form...), 400, "sql can't be a JSON number")
	}
	if len(w.emitted) != 2 {
		t.Errorf("a body that is neither was written: %+v", w.emitted)
	}
	var got Query
	w.query = func(_ context.Context, q Query) (*Result, error) {
		got = q
		return nil, errors.New("enough")
	}
	do(t, "POST", url+"/v1/query", `{"sql":"SELECT 1"}`, form...)
	if got.SQL != "SELECT 1" {
		t.Errorf("asked %+v", got)
	}
}

func TestStatementAuthorFromBasic(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	do(t, "POST", strings.Replace(url, "http://", "http://joe:secret@", 1)+"/v1/statements", create)
	if got := w.emitted[0].Author; got != "joe" {
		t.Errorf("author is %q", got)
	}
}

func TestStatementRefused(t *testing.T) {
	w := newWorld()
	w.judge = func(viewkeeper.Submission) viewkeeper.Decision {
		root := viewkeeper.MakeName("", "daily")
		return viewkeeper.Decision{Verdict: viewkeeper.Refused, Code: viewkeeper.CodeBreaksDependents, Message: "main.daily would break",
			Broken: []viewkeeper.Broken{{Name: root, Reason: "no column"}}}
	}
	r := do(t, "POST", w.start(t)+"/v1/statements?wait=fleet", create)
	want(t, r, 422, `"verdict":"refused"`, `"code":"BREAKS_DEPENDENTS"`, `"detail":"main.daily would break"`, `"title":"Other definitions would break"`,
		`"status":422`, `"broken":[{"name":"main.daily"`)
}

// Nothing may be written by a request that is answered with one of these.
func TestStatementNotWritten(t *testing.T) {
	long := "CREATE VIEW v AS SELECT '" + strings.Repeat("x", 70<<10) + "'"
	for _, c := range []struct {
		name    string
		world   func(*world)
		body    string
		headers []string
		query   string
		status  int
		code    string
	}{
		{"empty", nil, "  \n", nil, "", 400, "BAD_REQUEST"},
		{"bad JSON", nil, `{"sql":`, []string{"Content-Type", "application/json"}, "", 400, "BAD_REQUEST"},
		{"misspelt field", nil, `{"sql":"DROP VIEW v","expected_version":1}`, []string{"Content-Type", "application/json"}, "", 400, "BAD_REQUEST"},
		{"two objects", nil, `{"sql":"DROP VIEW v"}{}`, []string{"Content-Type", "application/json"}, "", 400, "BAD_REQUEST"},
		{"wrong wait", nil, create, nil, "?wait=always", 400, "BAD_REQUEST"},
		{"wrong timeout", nil, create, nil, "?timeout=soon", 400, "BAD_REQUEST"},
		{"id with a colon", nil, create, []string{"Idempotency-Key", "a:1"}, "", 400, "BAD_REQUEST"},
		{"long id", nil, create, []string{"Idempotency-Key", strings.Repeat("a", 129)}, "", 400, "BAD_REQUEST"},
		{"two ids", nil, `{"sql":"DROP VIEW v","id":"a"}`, []string{"Content-Type", "application/json", "Idempotency-Key", "b"}, "", 400, "BAD_REQUEST"},
		{"wrong type in JSON", nil, `{"sql":"DROP VIEW v","expect_version":"1"}`, nil, "", 400, "BAD_REQUEST"},
		{"not an object", nil, `[]`, []string{"Content-Type", "application/json"}, "", 400, "BAD_REQUEST"},
		{"compressed", nil, create, []string{"Content-Encoding", "gzip"}, "", 400, "BAD_REQUEST"},
		{"body over the limit", nil, long, nil, "", 413, "TOO_LARGE"},
		{"text over the limit", nil, strings.Repeat("-", 600<<10), nil, "", 413, "TOO_LARGE"},
		{"JSON over the limit", nil, `{"sql":"` + strings.Repeat("-", 600<<10) + `"}`, []string{"Content-Type", "application/json"}, "", 413, "TOO_LARGE"},
		{"not ready", func(w *world) {
			w.status.Ready, w.status.ReadyReasons = false, []string{viewkeeper.ReasonCatchingUp}
		}, create, nil, "", 503, "NOT_READY"},
		{"no owner", func(w *world) { w.status.Degraded = []string{viewkeeper.ReasonNoOwner} }, create, nil, "", 503, "NO_OWNER"},
		{"no right", func(w *world) { w.emitErr = fmt.Errorf("%w: denied", ErrForbidden) }, create, nil, "", 403, "FORBIDDEN"},
		{"record over the limit", func(w *world) { w.emitErr = ErrTooLarge }, create, nil, "", 413, "TOO_LARGE"},
		{"no broker", func(w *world) { w.emitErr = ErrNotWritten }, create, nil, "", 503, "UNREACHABLE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			if c.world != nil {
				c.world(w)
			}
			r := do(t, "POST", w.start(t)+"/v1/statements"+c.query, c.body, c.headers...)
			want(t, r, c.status, `"code":"`+c.code+`"`)
			if len(w.emitted) > 0 {
				t.Errorf("written: %+v", w.emitted)
			}
		})
	}
}

func TestStatementOnReadingNode(t *testing.T) {
	r := do(t, "POST", newWorld().start(t, func(c *Config) { c.Emitter = nil })+"/v1/statements", create)
	want(t, r, 403, "FORBIDDEN")
}

func TestStatementUndecided(t *testing.T) {
	w := newWorld()
	w.judge = nil
	url := w.start(t)
	r := do(t, "POST", url+"/v1/statements?timeout=1ms", create, "Idempotency-Key", "s1")
	want(t, r, 504, `"statement_id":"s1"`, "TIMEOUT")
	want(t, do(t, "GET", url+"/v1/statements/s1", ""), 202, `"statement_id":"s1"`)
	want(t, do(t, "GET", url+"/v1/statements/s2", ""), 404, "NOT_FOUND")
	w.change(func() {
		w.decisions = append(w.decisions, viewkeeper.Decision{StatementID: "s1", Verdict: viewkeeper.Unchanged, SQL: create})
	})
	r = do(t, "GET", url+"/v1/statements/s1", "")
	want(t, r, 200, `"verdict":"unchanged"`, `"warnings":[]`)
	if strings.Contains(r.body, "CREATE") {
		t.Errorf("the answer holds the text: %s", r.body)
	}
}

func TestStatementMaybeWritten(t *testing.T) {
	w := newWorld()
	w.emitErr = errors.New("no ack")
	r := do(t, "POST", w.start(t)+"/v1/statements", create)
	want(t, r, 504, `"statement_id":"`, "decided once")
}

// The status is the decision's; who does not have it yet is said beside it.
func TestStatementNotEverywhere(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	r := do(t, "POST", url+"/v1/statements?wait=fleet&timeout=1ms", create)
	want(t, r, 200, `"missing":["n1","n2"]`, `"reached":[]`, `"verdict":"accepted"`)
}

func TestStatementFleet(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	done := make(chan reply)
	go func() { done <- do(t, "POST", url+"/v1/statements?wait=fleet&timeout=15s", create) }()
	// n1 reaches the version, and n2 leaves during the wait: it stops counting.
	if err := w.wait(t.Context(), func() bool { return len(w.decisions) == 1 }); err != nil {
		t.Fatal(err)
	}
	w.change(func() { w.nodes = []viewkeeper.Status{{Node: "n1", Version: 1}, {Node: "n2"}} })
	w.change(func() { w.nodes = w.nodes[:1] })
	want(t, <-done, 200, `"missing":[]`, `"reached":["n1"]`)
}

func TestRecordKey(t *testing.T) {
	for sql, key := range map[string]string{
		"CREATE VIEW s.V AS SELECT 1":    "s.v",
		"DROP VIEW v":                    "main.v",
		"DROP VIEW v, w":                 "statement:id",
		"ALTER VIEW v RENAME TO w":       "main.v",
		"COMMENT ON VIEW v IS 'x'":       "main.v",
		"BEGIN; DROP VIEW v; COMMIT;":    "statement:id",
		"SELECT 1":                       "statement:id",
		"CREATE VIEW v AS SELECT 1; x y": "statement:id",
	} {
		if got, _ := RecordKey(ddl.DefaultLimits(), sql, "id"); got != key {
			t.Errorf("%s has key %q, want %q", sql, got, key)
		}
	}
}

func TestCheck(t *testing.T) {
	w := newWorld()
	url := w.start(t)
	want(t, do(t, "POST", url+"/v1/check", create), 200, `"at_version":7`, `"verdict":"accepted"`)
	w.judge = func(viewkeeper.Submission) viewkeeper.Decision {
		return viewkeeper.Decision{Verdict: viewkeeper.Refused, Code: viewkeeper.CodeBind}
	}
	want(t, do(t, "POST", url+"/v1/check", create), 200, `"verdict":"refused"`)
	want(t, do(t, "POST", url+"/v1/check", "crash"), 503, "ENGINE_KILLED")
	if len(w.emitted) > 0 {
		t.Error("a check was written")
	}
	w.change(func() { w.status.Ready = false })
	want(t, do(t, "POST", url+"/v1/check", create), 503, "NOT_READY")
}

func TestTitlesAreWords(t *testing.T) {
	for _, code := range []viewkeeper.Code{CodeBadRequest, CodeNoOwner, CodeInternal, viewkeeper.CodeBind} {
		if title(code) == "Refused with "+string(code) {
			t.Errorf("%s has no title", code)
		}
	}
	var p *Problem = engineProblem("x", &registry.LostError{Timeout: true})
	if p.Status != http.StatusGatewayTimeout {
		t.Errorf("%+v", p)
	}
}
