package server

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"

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

// readSubmission reads a statement from a request's body and headers.
func (s *Server) readSubmission(w http.ResponseWriter, r *http.Request) (viewkeeper.Submission, *Problem) {
	none := viewkeeper.Submission{}
	// What the text itself may have is asked below; a JSON body has its escapes too.
	text, problem := readBody(w, r, 2*s.cfg.Limits.MaxChangeSet+4096)
	if problem != nil {
		return none, problem
	}
	body := statementBody{SQL: string(text)}
	if isJSON(r, text) {
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
	for _, said := range []struct {
		what, text string
		limit      int
	}{{"author", author(r), codec.MaxAuthor}, {"reason", body.Reason, codec.MaxReason}} {
		if len(said.text) > said.limit {
			return none, problemf(http.StatusBadRequest, CodeBadRequest, "the %s is %d bytes long and the limit is %d; nothing was written", said.what, len(said.text), said.limit)
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
