package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// bodyTimeout bounds the reading of a request's body.
const bodyTimeout = 30 * time.Second

// maxTimeout bounds the waits that a client can ask for.
const maxTimeout = 10 * time.Minute

// readBody reads at most limit bytes of the body. limit counts SQL text; a JSON
// body may be larger by its envelope and escapes.
func readBody(w http.ResponseWriter, r *http.Request, limit int) ([]byte, *Problem) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		// Compressed bytes taken for SQL would leave a refused record.
		return nil, problemf(http.StatusBadRequest, CodeBadRequest,
			"Content-Encoding is %q; send the body as it is; nothing was written", coding)
	}
	// A server that cannot set deadlines (a test's recorder) reads without one.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(limit)))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, problemf(http.StatusRequestEntityTooLarge, viewkeeper.CodeTooLarge,
			"the request's body is over the limit of %d bytes; nothing was written", tooLarge.Limit)
	case err != nil:
		return nil, problemf(http.StatusBadRequest, CodeBadRequest, "reading the request's body: %v", err)
	}
	return body, nil
}

// isJSON reports whether a body is a JSON document: it says so, or it begins with
// a brace, as no SQL does. The type alone is not asked, since curl -d calls all that
// it sends a form; a body read as SQL by mistake would leave a refused record.
func isJSON(r *http.Request, body []byte) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json" || bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))
}

// decodeJSON reads one JSON object and refuses fields that it does not know, since
// a misspelt expect_version would silently protect nothing.
func decodeJSON(body []byte, into any) *Problem {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil && dec.More() {
		err = errors.New("something follows the object")
	}
	if err != nil {
		return problemf(http.StatusBadRequest, CodeBadRequest, "the body is not the JSON object that %s", describe(into, err))
	}
	return nil
}

func describe(into any, err error) string {
	fields := `{"sql", "id", "expect_version", "reason"}`
	if _, ok := into.(*queryBody); ok {
		fields = `{"sql", "min_version", "timeout"}`
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		// The package's own words name types of Go.
		field := kind.Field
		if field == "" {
			field = "the body"
		}
		return fmt.Sprintf("is asked for, %s: %s can't be a JSON %s", fields, field, kind.Value)
	}
	return fmt.Sprintf("is asked for, %s: %v", fields, err)
}

// duration is a length of time in JSON: "10s", or a number of seconds.
type duration time.Duration

func (d *duration) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		text = string(b)
	}
	v, err := parseDuration(text)
	*d = duration(v)
	return err
}

// parseDuration reads "10s", "1m30s" or a plain number of seconds.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if n, numErr := strconv.ParseFloat(s, 64); numErr == nil {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a length of time; write 10s, 1m30s or a number of seconds", s)
	}
	return min(d, maxTimeout), nil
}

// params reads the query of a URL. The first thing that is wrong is its problem.
type params struct {
	r       *http.Request
	problem *Problem
}

func (p *params) fail(name string, format string, args ...any) {
	if p.problem == nil {
		p.problem = problemf(http.StatusBadRequest, CodeBadRequest, "parameter %s: %s", name, fmt.Sprintf(format, args...))
	}
}

func (p *params) text(name string) string { return p.r.URL.Query().Get(name) }

func (p *params) duration(name string, otherwise time.Duration) time.Duration {
	s := p.text(name)
	if s == "" {
		return otherwise
	}
	d, err := parseDuration(s)
	if err != nil {
		p.fail(name, "%v", err)
	}
	return d
}

func (p *params) version(name string) viewkeeper.Version {
	s := p.text(name)
	if s == "" {
		return 0
	}
	v, err := viewkeeper.ParseVersion(s)
	if err != nil {
		p.fail(name, "%q is not a version; a version is a whole number from 0", s)
	}
	return v
}

func (p *params) count(name string, otherwise, most int) int {
	s := p.text(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		p.fail(name, "%q is not a whole number from 1", s)
	}
	return min(n, most)
}

func (p *params) name(name string) viewkeeper.Name {
	s := p.text(name)
	if s == "" {
		return viewkeeper.Name{}
	}
	n, err := viewkeeper.ParseName(s)
	if err != nil {
		p.fail(name, "%v", err)
	}
	return n
}

func (p *params) oneOf(name, otherwise string, allowed ...string) string {
	s := p.text(name)
	if s == "" {
		return otherwise
	}
	for _, a := range allowed {
		if s == a {
			return s
		}
	}
	p.fail(name, "%q is none of %q", s, allowed)
	return otherwise
}

// pathName reads the name in a path. Both forms are accepted.
func pathName(r *http.Request) (viewkeeper.Name, *Problem) {
	n, err := viewkeeper.ParseName(r.PathValue("name"))
	if err != nil {
		return n, problemf(http.StatusBadRequest, viewkeeper.CodeName, "%s", message(err))
	}
	return n, nil
}

// message is an error's text without the code that a problem has beside it.
func message(err error) string {
	var e *viewkeeper.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) }
