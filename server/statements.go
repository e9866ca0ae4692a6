package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

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

// noOwner says that nobody can decide a statement now, so that it is not written for
// whoever comes, and its author does not wait in vain.
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
		return problemf(http.StatusServiceUnavailable, CodeUnreachable, "%v; try again", err)
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
