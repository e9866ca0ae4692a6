package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// queryBody is the JSON form of a query. A body that is not JSON is the SQL text.
type queryBody struct {
	SQL        string             `json:"sql"`
	MinVersion viewkeeper.Version `json:"min_version"`
	Timeout    duration           `json:"timeout"`
}

// postQuery answers one query. The order matters: what the client did wrong comes
// before any wait, and the engine is asked last, when nothing else can fail.
func (s *Server) postQuery(w http.ResponseWriter, r *http.Request) *Problem {
	q, problem := s.readQuery(w, r)
	if problem != nil {
		return problem
	}
	format, problem := negotiate(r)
	if problem != nil {
		return problem
	}
	if problem := notReady(s.cfg.Node.Status()); problem != nil {
		return problem
	}
	timeout := s.cfg.QueryTimeout
	if t := time.Duration(q.Timeout); t > 0 {
		timeout = min(t, timeout)
	}
	deadline := time.Now().Add(timeout)
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	defer cancel()
	if err := s.cfg.Node.WaitVersion(ctx, q.MinVersion); err != nil {
		return problemf(http.StatusGatewayTimeout, CodeTimeout, "version %s was not reached in %s; this node is at %s",
			q.MinVersion, timeout, s.cfg.Node.Status().Version)
	}
	done, problem := s.turns.take(ctx, func(n int) { s.metrics.waiting.Add(float64(n)) })
	if problem != nil {
		w.Header().Set("Retry-After", "1")
		return problem
	}
	defer done()
	system, err := s.systemRows(ctx, s.cfg.Engine.References(q.SQL))
	if err != nil {
		return problemf(http.StatusInternalServerError, CodeInternal, "collecting the rows of the schema vk: %v", err)
	}
	s.metrics.running.Inc()
	defer s.metrics.running.Dec()
	result, err := s.cfg.Engine.Query(ctx, Query{SQL: q.SQL, Timeout: time.Until(deadline), VK: system})
	if err != nil {
		return engineProblem(q.SQL, err)
	}
	// The engine has a change a moment before the node has it for good: were the engine
	// lost in between, the next one would be without, and whoever asks then would see an
	// older catalog than this answer told of.
	if err := s.cfg.Node.WaitVersion(ctx, result.Version); err != nil {
		if err := result.Body.Close(); err != nil {
			s.log.Debug("an answer that is not given", "error", err)
		}
		return problemf(http.StatusGatewayTimeout, CodeTimeout, "the answer is of version %s, which this node did not finish in %s; it is at %s; ask again",
			result.Version, timeout, s.cfg.Node.Status().Version)
	}
	w.Header().Set(HeaderVersion, result.Version.String())
	rows, err := s.stream(w, format, result)
	closed := result.Body.Close()
	s.metrics.rows.Add(float64(rows))
	if err = errors.Join(err, closed); err != nil {
		s.metrics.cut.Inc()
		s.log.Debug("an answer was cut", "rows", rows, "error", err)
		// The status is written already: only a broken connection can tell the
		// client that this is not the whole answer.
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *Server) readQuery(w http.ResponseWriter, r *http.Request) (*queryBody, *Problem) {
	text, problem := readBody(w, r, 2*s.cfg.Limits.MaxChangeSet)
	if problem != nil {
		return nil, problem
	}
	q := &queryBody{SQL: string(text)}
	if isJSON(r, text) {
		q.SQL = ""
		if problem := decodeJSON(text, q); problem != nil {
			return nil, problem
		}
		if r.URL.RawQuery != "" {
			return nil, problemf(http.StatusBadRequest, CodeBadRequest, "the body is JSON, and the URL has parameters too; give min_version and timeout in the body")
		}
	} else {
		p := params{r: r}
		q.MinVersion, q.Timeout = p.version("min_version"), duration(p.duration("timeout", 0))
		if p.problem != nil {
			return nil, p.problem
		}
	}
	if strings.TrimSpace(q.SQL) == "" {
		return nil, problemf(http.StatusBadRequest, CodeBadRequest, "there is no SQL text in the body; send one query")
	}
	if isDDL(q.SQL) {
		return nil, problemf(http.StatusBadRequest, viewkeeper.CodeNotOneQuery, "this is DDL and not a query; send it to POST /v1/statements")
	}
	return q, nil
}

// isDDL reports whether a text begins as a statement of the language does. What is
// neither DDL nor a query is the engine's gate to refuse.
func isDDL(sql string) bool {
	tokens, _ := ddl.Tokens(sql)
	if len(tokens) == 0 {
		return false
	}
	for _, word := range []string{"create", "drop", "alter", "comment", "begin"} {
		if tokens[0].Is(word) {
			return true
		}
	}
	return false
}

// engineProblem words what the engine, or the planner, said to a text.
func engineProblem(sql string, err error) *Problem {
	var plan *registry.PlanError
	var lost *registry.LostError
	switch {
	case errors.As(err, &plan):
		p := problemf(http.StatusBadRequest, plan.Code, "%s", plan.Message)
		p.Position = viewkeeper.PositionAt(sql, plan.At)
		return p
	case errors.As(err, &lost) && lost.Timeout:
		return problemf(http.StatusGatewayTimeout, viewkeeper.CodeEngineTimeout,
			"the engine outlasted its time limit and was stopped (%s); a new one starts at once, ask for less", lost.Detail)
	case errors.As(err, &lost):
		return problemf(http.StatusServiceUnavailable, viewkeeper.CodeEngineKilled,
			"the engine ended while it worked on this (%s); a new one starts at once, try again or ask for less", lost.Detail)
	case errors.Is(err, context.DeadlineExceeded):
		return problemf(http.StatusGatewayTimeout, CodeTimeout, "the answer was not there in time; give a longer timeout or ask for less")
	case errors.Is(err, context.Canceled):
		// The client went; nobody reads this.
		return problemf(http.StatusServiceUnavailable, CodeStopping, "the request was given up")
	}
	return problemf(http.StatusInternalServerError, CodeInternal, "the engine failed: %v", err)
}

// systemRows collects the rows of the tables of the schema vk that a query names.
func (s *Server) systemRows(ctx context.Context, tables []string) (map[string]json.RawMessage, error) {
	if len(tables) == 0 {
		return nil, nil
	}
	system := make(map[string]json.RawMessage, len(tables))
	for _, table := range tables {
		rows, err := s.systemTable(ctx, table)
		if err != nil {
			return nil, err
		}
		if system[table], err = json.Marshal(rows); err != nil {
			return nil, err
		}
	}
	return system, nil
}
