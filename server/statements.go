package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// statementBody is the JSON form of a statement.
type statementBody struct {
	SQL           string              `json:"sql"`
	ID            string              `json:"id"`
	ExpectVersion *viewkeeper.Version `json:"expect_version"`
	Reason        string              `json:"reason"`
}

// fleetAnswer is a decision with who has it, for wait=node and wait=fleet. A client
// that finds Missing empty may rely on every node.
type fleetAnswer struct {
	viewkeeper.Decision
	Reached []string `json:"reached"`
	Missing []string `json:"missing"`
}

// defaultWait is the time limit of a statement that names none.
const defaultWait = 10 * time.Second

// postStatement submits one statement. Everything that can be refused without
// writing is refused first; from the first byte written on, every answer has the
// statement's id.
func (s *Server) postStatement(w http.ResponseWriter, r *http.Request) *Problem {
	p := params{r: r}
	wait := p.oneOf("wait", "node", "decided", "node", "fleet")
	timeout := p.duration("timeout", defaultWait)
	if p.problem != nil {
		return p.problem
	}
	sub, problem := s.readSubmission(w, r)
	if problem != nil {
		return problem
	}
	if sub.ID == "" {
		sub.ID = NewStatementID()
	}
	var err error
	if sub.Key, err = RecordKey(s.cfg.Limits, sub.SQL, sub.ID); viewkeeper.CodeOf(err) == viewkeeper.CodeTooLarge {
		return problemf(http.StatusRequestEntityTooLarge, viewkeeper.CodeTooLarge, "%s; nothing was written", message(err))
	}
	st := s.cfg.Node.Status()
	if problem := notReady(st); problem != nil {
		return problem
	}
	if problem := noOwner(st); problem != nil {
		return problem
	}
	if s.cfg.Emitter == nil {
		return problemf(http.StatusForbidden, CodeForbidden, "node %s only reads; send statements to another node or to the definitions topic", st.Node)
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	offset, err := s.cfg.Emitter.Emit(ctx, sub)
	if err != nil {
		return emitProblem(err, sub.ID)
	}
	decision, err := s.cfg.Node.WaitDecision(ctx, sub.ID, offset)
	if err != nil {
		return undecided(sub.ID)
	}
	s.answerDecision(ctx, w, decision, wait)
	return nil
}

// readSubmission reads a statement from a request's body and headers.
func (s *Server) readSubmission(w http.ResponseWriter, r *http.Request) (viewkeeper.Submission, *Problem) {
	none := viewkeeper.Submission{}
	limit := s.cfg.Limits.MaxChangeSet
	if isJSON(r) {
		limit = 2*limit + 4096
	}
	text, problem := readBody(w, r, limit)
	if problem != nil {
		return none, problem
	}
	body := statementBody{SQL: string(text)}
	if isJSON(r) {
		body.SQL = ""
		if problem := decodeJSON(text, &body); problem != nil {
			return none, problem
		}
	}
	if strings.TrimSpace(body.SQL) == "" {
		return none, problemf(http.StatusBadRequest, CodeBadRequest, "there is no SQL text in the body; send one DDL statement or one change set")
	}
	if len(body.SQL) > s.cfg.Limits.MaxChangeSet {
		return none, problemf(http.StatusRequestEntityTooLarge, viewkeeper.CodeTooLarge,
			"the statement is %d bytes long and the limit is %d; nothing was written", len(body.SQL), s.cfg.Limits.MaxChangeSet)
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		if body.ID != "" && body.ID != key {
			return none, problemf(http.StatusBadRequest, CodeBadRequest, "the Idempotency-Key is %q and the id in the body %q; give one of them", key, body.ID)
		}
		body.ID = key
	}
	if body.ID != "" {
		if err := codec.CheckID(body.ID); err != nil {
			return none, problemf(http.StatusBadRequest, CodeBadRequest, "the statement id: %v", err)
		}
	}
	return viewkeeper.Submission{
		SQL: body.SQL, ID: body.ID, ExpectVersion: body.ExpectVersion, Reason: body.Reason,
		Author: author(r), Traceparent: r.Header.Get("Traceparent"), Offset: -1,
	}, nil
}

// author is what the producer says of itself.
func author(r *http.Request) string {
	if a := r.Header.Get("X-Author"); a != "" {
		return a
	}
	user, _, _ := r.BasicAuth()
	return user
}

// NewStatementID makes a random statement id.
func NewStatementID() string {
	var b [16]byte
	// crypto/rand never fails; it ends the process instead.
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// RecordKey gives the key of a statement's record: the name of its one target, or
// for a change set, a drop of several, or a text that does not parse, one that is
// made of the statement id: as unique as the id, and never a definition's name,
// whatever id a client chose. The error is the parser's; the key is good also with
// it, since to refuse is the judge's.
func RecordKey(limits ddl.Limits, sql, id string) (string, error) {
	unique := "statement:" + id
	st, err := limits.Parse(sql)
	if err != nil {
		return unique, err
	}
	switch st := st.(type) {
	case *viewkeeper.Create:
		return st.Name.String(), nil
	case *viewkeeper.Comment:
		return st.Name.String(), nil
	case *viewkeeper.Rename:
		return st.From.String(), nil
	case *viewkeeper.Drop:
		if len(st.Names) == 1 {
			return st.Names[0].String(), nil
		}
	}
	return unique, nil
}

func noOwner(st viewkeeper.Status) *Problem {
	for _, reason := range slices.Concat(st.ReadyReasons, st.Degraded) {
		if reason == viewkeeper.ReasonNoOwner || reason == viewkeeper.ReasonNoOwnerAtEnd {
			detail := st.Details[reason]
			if detail == "" {
				detail = "no process with the owner role is alive"
			}
			return problemf(http.StatusServiceUnavailable, CodeNoOwner, "%s; nothing was written, try again when there is one", detail)
		}
	}
	return nil
}

// emitProblem words a failed write. Only what the emitter is sure of is called
// not written.
func emitProblem(err error, id string) *Problem {
	switch {
	case errors.Is(err, ErrForbidden):
		return problemf(http.StatusForbidden, CodeForbidden, "%v; nothing was written", err)
	case errors.Is(err, ErrTooLarge):
		return problemf(http.StatusRequestEntityTooLarge, viewkeeper.CodeTooLarge, "%v; nothing was written", err)
	case errors.Is(err, ErrNotWritten):
		return problemf(http.StatusServiceUnavailable, CodeUnreachable, "%v; nothing was written, try again", err)
	}
	p := problemf(http.StatusGatewayTimeout, CodeTimeout,
		"whether statement %s was written is not known (%v); send the same text with the same id again, it is decided once", id, err)
	p.StatementID = id
	return p
}

func undecided(id string) *Problem {
	p := problemf(http.StatusGatewayTimeout, CodeTimeout,
		"statement %s is written and was not decided in time; ask GET /v1/statements/%s, or send it again with the same id", id, id)
	p.StatementID = id
	return p
}

// answerDecision waits for whom wait names and answers. A refusal has nothing to
// wait for. A wait that ends early changes who is missing, not the status: the
// decision stands.
func (s *Server) answerDecision(ctx context.Context, w http.ResponseWriter, d viewkeeper.Decision, wait string) {
	d = d.ForClient()
	d.Normalize()
	switch {
	case d.Verdict == viewkeeper.Refused:
		writeRefusal(w, d)
	case wait == "node":
		node := s.cfg.Node.Status().Node
		answer := fleetAnswer{Decision: d, Reached: []string{node}, Missing: []string{}}
		if s.cfg.Node.WaitVersion(ctx, d.Version) != nil {
			answer.Reached, answer.Missing = answer.Missing, answer.Reached
		}
		// The version of the answer is that of the node after the wait.
		w.Header().Set(HeaderVersion, s.cfg.Node.Status().Version.String())
		writeJSON(w, http.StatusOK, answer)
	case wait == "fleet":
		// The error is the end of the wait; who is missing says the rest.
		reached, missing, _ := s.cfg.Node.WaitFleet(ctx, d.Version)
		w.Header().Set(HeaderVersion, s.cfg.Node.Status().Version.String())
		writeJSON(w, http.StatusOK, fleetAnswer{Decision: d, Reached: emptyIfNil(reached), Missing: emptyIfNil(missing)})
	default:
		writeJSON(w, http.StatusOK, d)
	}
}

func writeRefusal(w http.ResponseWriter, d viewkeeper.Decision) {
	writeBody(w, http.StatusUnprocessableEntity, "application/problem+json",
		refusal{Decision: d, Status: http.StatusUnprocessableEntity, Title: title(d.Code), Detail: d.Message})
}

// getStatement answers what became of a statement.
func (s *Server) getStatement(w http.ResponseWriter, r *http.Request) *Problem {
	id := r.PathValue("id")
	d, seen, err := s.cfg.Node.Decision(r.Context(), id)
	switch {
	case err != nil:
		return problemf(http.StatusInternalServerError, CodeInternal, "looking for statement %s: %v", id, err)
	case d != nil:
		answer := d.ForClient()
		answer.Normalize()
		writeJSON(w, http.StatusOK, answer)
	case seen:
		writeJSON(w, http.StatusAccepted, map[string]string{"statement_id": id, "state": "seen and not decided"})
	default:
		return problemf(http.StatusNotFound, viewkeeper.CodeNotFound, "no statement with id %q was seen on this node (yet)", id)
	}
	return nil
}

// postCheck says what the judge would say. Nothing is written.
func (s *Server) postCheck(w http.ResponseWriter, r *http.Request) *Problem {
	sub, problem := s.readSubmission(w, r)
	if problem != nil {
		return problem
	}
	if problem := notReady(s.cfg.Node.Status()); problem != nil {
		return problem
	}
	if sub.ID == "" {
		sub.ID = "check"
	}
	// The key is checked only against what a producer chose; here nobody did.
	sub.Key, _ = RecordKey(s.cfg.Limits, sub.SQL, sub.ID)
	sub.At = time.Now().UTC()
	d, at, err := s.cfg.Checker.Check(r.Context(), sub)
	if err != nil {
		return engineProblem(sub.SQL, err)
	}
	d = d.ForClient()
	d.Normalize()
	writeJSON(w, http.StatusOK, struct {
		Decision  viewkeeper.Decision `json:"decision"`
		AtVersion viewkeeper.Version  `json:"at_version"`
	}{d, at})
	return nil
}
