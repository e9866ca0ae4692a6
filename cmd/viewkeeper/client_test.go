package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

// A connection that breaks after the statement has left may have had it written: the
// exit status must not say that nobody was there, and the id must be told.
func TestSubmitConnectionBreaks(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer srv.Close()
	c := &client{base: srv.URL, http: srv.Client()}
	_, err := c.submit(t.Context(), viewkeeper.Submission{SQL: "DROP VIEW v", ID: "some-id"}, nil)
	if exitCode(err) != exitTimeout || !strings.Contains(err.Error(), "some-id") {
		t.Errorf("%d %v", exitCode(err), err)
	}
}

// A half answer is not an answer.
func TestSubmitAnswerIsCut(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"verdict":`))
	}))
	defer srv.Close()
	c := &client{base: srv.URL, http: srv.Client()}
	_, err := c.submit(t.Context(), viewkeeper.Submission{SQL: "DROP VIEW v", ID: "some-id"}, nil)
	if exitCode(err) != exitTimeout || !strings.Contains(err.Error(), "some-id") {
		t.Errorf("%d %v", exitCode(err), err)
	}
}

func TestSubmitNobodyThere(t *testing.T) {
	c := &client{base: "http://127.0.0.1:1", http: http.DefaultClient}
	if _, err := c.submit(t.Context(), viewkeeper.Submission{SQL: "DROP VIEW v", ID: "some-id"}, nil); exitCode(err) != exitUnreachable {
		t.Errorf("%d %v", exitCode(err), err)
	}
}

// An answer of a query that is cut is told from a short one, in every form.
func TestQueryIsCut(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"columns":[{"name":"n","type":"INTEGER"}],"rows":[[1],`))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	for _, form := range []string{"table", "json", "csv"} {
		var out, complaints strings.Builder
		code := run(t.Context(), []string{"sql", "--server", srv.URL, "--output", form, "-c", "SELECT 1"}, stdio{in: strings.NewReader(""), out: &out, err: &complaints})
		if code != exitRefused || !strings.Contains(complaints.String(), "cut") {
			t.Errorf("as %s: %d %s", form, code, complaints.String())
		}
	}
}

// Brokers that take a connection and say nothing.
func TestSilentKafkaIsNamed(t *testing.T) {
	err := kafkaFailure(fmt.Errorf("reading: %w", context.DeadlineExceeded))
	if exitCode(err) != exitTimeout || !strings.Contains(err.Error(), "Kafka did not answer") {
		t.Errorf("%d %v", exitCode(err), err)
	}
}
