package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/viewkeeper/viewkeeper"
)

// The codes of problems that are the door's own, beside those of docs/codes.md.
const (
	CodeBadRequest       viewkeeper.Code = "BAD_REQUEST"
	CodeForbidden        viewkeeper.Code = "FORBIDDEN"
	CodeMethodNotAllowed viewkeeper.Code = "METHOD_NOT_ALLOWED"
	CodeNotAcceptable    viewkeeper.Code = "NOT_ACCEPTABLE"
	CodeNoOwner          viewkeeper.Code = "NO_OWNER"
	CodeNotReady         viewkeeper.Code = "NOT_READY"
	CodeUnreachable      viewkeeper.Code = "UNREACHABLE"
	CodeTimeout          viewkeeper.Code = "TIMEOUT"
	CodeStopping         viewkeeper.Code = "STOPPING"
	CodeGone             viewkeeper.Code = "GONE"
	CodeTooBusy          viewkeeper.Code = "TOO_BUSY"
	CodeInternal                         = viewkeeper.CodeInternal
)

// Problem is the body of every answer that is an error, application/problem+json
// of RFC 9457.
type Problem struct {
	// Status is the HTTP status, which stands in the body too.
	Status int             `json:"status"`
	Code   viewkeeper.Code `json:"code"`
	// Title is the same for every problem of a code; Detail says what happened,
	// to which object, and the way out.
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// Position is the place in the SQL text of the request, when there is one.
	Position *viewkeeper.Position `json:"position,omitempty"`
	// StatementID is set when a statement was written, or may have been: asking
	// again with it is safe.
	StatementID string `json:"statement_id,omitempty"`
}

// Error gives the detail with its code.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

func problemf(status int, code viewkeeper.Code, format string, args ...any) *Problem {
	return &Problem{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// refusal is a refused decision as a problem: the decision's own fields, and the
// title and detail that RFC 9457 asks for.
type refusal struct {
	viewkeeper.Decision
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// title gives the words for a code that do not change from one occurrence to the
// next.
func title(code viewkeeper.Code) string {
	switch code {
	case CodeBadRequest:
		return "The request is not well formed"
	case CodeForbidden:
		return "No right to write"
	case CodeMethodNotAllowed:
		return "This path does not take this method"
	case CodeNotAcceptable:
		return "No such form of the answer"
	case CodeNoOwner:
		return "No live owner judges statements now"
	case CodeNotReady:
		return "This node is not ready"
	case CodeUnreachable:
		return "Kafka does not answer"
	case CodeTimeout:
		return "Not in time"
	case CodeStopping:
		return "This node is stopping"
	case CodeGone:
		return "It is no longer kept"
	case CodeTooBusy:
		return "Too many queries at one time"
	case CodeInternal:
		return "The server failed"
	case viewkeeper.CodeNotFound:
		return "There is no such thing here"
	case viewkeeper.CodeTooLarge:
		return "Over the size limit"
	case viewkeeper.CodeSyntax:
		return "The text does not parse"
	case viewkeeper.CodeNotOneQuery:
		return "This is not one query"
	case viewkeeper.CodeNotAllowed:
		return "The query asks for what is not allowed"
	case viewkeeper.CodeComplexity:
		return "Over a limit on complexity"
	case viewkeeper.CodeBind:
		return "The query does not fit the catalog"
	case viewkeeper.CodeBreaksDependents:
		return "Other definitions would break"
	case viewkeeper.CodeEngineKilled:
		return "The engine was lost"
	case viewkeeper.CodeEngineTimeout:
		return "The engine outlasted its time limit"
	}
	return "Refused with " + string(code)
}

// writeProblem answers with p. A problem without a status is the server's own.
func writeProblem(w http.ResponseWriter, p *Problem) {
	if p.Status == 0 {
		p.Status = http.StatusInternalServerError
	}
	if p.Title == "" {
		p.Title = title(p.Code)
	}
	writeBody(w, p.Status, "application/problem+json", p)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	writeBody(w, status, "application/json", body)
}

// writeBody encodes before it writes, so that a value that cannot be encoded is an
// error answer and not half of a good one.
func writeBody(w http.ResponseWriter, status int, contentType string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, contentType = http.StatusInternalServerError, "application/problem+json"
		text = []byte(`{"status":500,"code":"INTERNAL","title":"The server failed","detail":"the answer could not be encoded"}`)
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	// An error here is the client's going; there is nobody left to tell.
	_, _ = w.Write(append(text, '\n'))
}
