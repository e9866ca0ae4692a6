package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/server"
)

// client speaks HTTP with a node.
type client struct {
	base string
	http *http.Client
	// catalog is the one that the node must follow, "" for any or when it was found to;
	// from is where that was said.
	catalog, from string
}

// client gives the client of the node that --server names.
func (a *app) client() (*client, error) {
	base := a.Server
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return nil, usagef("--server is %q; it takes a URL as http://127.0.0.1:7410", a.Server)
	}
	c := &client{base: strings.TrimSuffix(base, "/"), http: &http.Client{}}
	if from := a.source("catalog"); from != "default" {
		c.catalog, c.from = a.Catalog, from
	}
	return c, nil
}

// send makes one request. What kept it from an answer is a failure that knows its
// exit status; the caller closes the body of an answer.
func (c *client) send(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	if err := c.checkCatalog(ctx); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := c.http.Do(req)
	switch {
	case err == nil:
		return resp, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, timeoutf("%s did not answer in time", c.base)
	case errors.Is(err, context.Canceled):
		return nil, &failure{code: exitTimeout, err: errors.New("interrupted")}
	}
	var op *url.Error
	if errors.As(err, &op) {
		err = op.Err
	}
	return nil, unreachablef("no node answers at %s (%w); start one with 'viewkeeper dev' or 'viewkeeper serve', or name it with --server", c.base, err)
}

// checkCatalog asks the node for its catalog before anything else is asked, when the
// person said which one is meant: brokers and catalog in the environment do not lead
// these commands anywhere, and the node near at hand may be of another catalog.
func (c *client) checkCatalog(ctx context.Context) error {
	if c.catalog == "" {
		return nil
	}
	want := c.catalog
	c.catalog = "" // the question itself
	var st viewkeeper.Status
	if _, err := c.get(ctx, "/v1/status", nil, &st); err != nil {
		c.catalog = want
		return err
	}
	if st.Catalog != want {
		c.catalog = want
		return usagef("the node at %s is of catalog %s, and the catalog asked for is %s (by %s); name a node of %s with --server", c.base, st.Catalog, want, c.from, want)
	}
	return nil
}

// neverSent reports whether a request failed before any of it left.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// get asks for a JSON document. raw is the document as it came.
func (c *client) get(ctx context.Context, path string, query url.Values, into any) (raw []byte, err error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err = io.ReadAll(resp.Body)
	if err != nil {
		return nil, unreachablef("the answer of %s was cut: %w", c.base, err)
	}
	if resp.StatusCode >= 300 {
		return nil, problem(resp.StatusCode, raw)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fmt.Errorf("%s%s did not answer as a node does: %w", c.base, path, err)
	}
	return raw, nil
}

// problem gives a problem answer as a failure with its exit status.
func problem(status int, raw []byte) error {
	p := server.Problem{}
	if err := json.Unmarshal(raw, &p); err != nil || p.Detail == "" {
		p.Detail = fmt.Sprintf("the server answered %d %s: %.200s", status, http.StatusText(status), raw)
	}
	text := inCommands(p.Detail)
	if p.Code != "" {
		text = string(p.Code) + ": " + text
	}
	if p.StatementID != "" {
		text += fmt.Sprintf("\nstatement id: %s", p.StatementID)
	}
	f := &failure{code: exitRefused, err: &problemError{Problem: p, text: text}}
	switch status {
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		f.code = exitUnreachable
	case http.StatusGatewayTimeout:
		f.code = exitTimeout
	}
	return f
}

// inCommands gives a way out that speaks of HTTP in the words of the command line.
func inCommands(detail string) string {
	return strings.NewReplacer(
		"GET /v1/definitions lists them", "'viewkeeper views' lists them",
		"ask GET /v1/statements/", "ask viewkeeper decision ",
	).Replace(detail)
}

// problemError keeps the problem for whoever can show its place in the text.
type problemError struct {
	server.Problem
	text string
}

func (p *problemError) Error() string { return p.text }

// answer is what became of a statement: its decision, and with a wait for nodes
// who has it.
type answer struct {
	viewkeeper.Decision
	Reached []string `json:"reached"`
	Missing []string `json:"missing"`
	// waitErr is why a wait for nodes ended early: the decision stands.
	waitErr error
	// raw is the answer as it came.
	raw []byte
}

// submit posts a statement. A refusal is an answer and no error.
func (c *client) submit(ctx context.Context, sub viewkeeper.Submission, query url.Values) (*answer, error) {
	return c.post(ctx, "/v1/statements?"+query.Encode(), sub, func(raw []byte, into *answer) error { return json.Unmarshal(raw, into) })
}

// check asks what the judge would say.
func (c *client) check(ctx context.Context, sub viewkeeper.Submission) (*answer, error) {
	return c.post(ctx, "/v1/check", sub, func(raw []byte, into *answer) error {
		var body struct {
			Decision viewkeeper.Decision `json:"decision"`
		}
		err := json.Unmarshal(raw, &body)
		into.Decision = body.Decision
		return err
	})
}

func (c *client) post(ctx context.Context, path string, sub viewkeeper.Submission, decode func([]byte, *answer) error) (*answer, error) {
	body, err := json.Marshal(struct {
		SQL           string              `json:"sql"`
		ID            string              `json:"id,omitempty"`
		ExpectVersion *viewkeeper.Version `json:"expect_version,omitempty"`
		Reason        string              `json:"reason,omitempty"`
	}{sub.SQL, sub.ID, sub.ExpectVersion, sub.Reason})
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if sub.Author != "" {
		header.Set("X-Author", sub.Author)
	}
	resp, err := c.send(ctx, http.MethodPost, path, body, header)
	if err != nil && exitCode(err) == exitUnreachable && !neverSent(err) {
		// The node had it in hand when the connection broke.
		return nil, timeoutf("the connection to %s broke before the answer came (%w); statement id: %s, asking again with it is safe", c.base, err, sub.ID)
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, timeoutf("the answer was cut (%w); statement id: %s, asking again with it is safe", err, sub.ID)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusUnprocessableEntity {
		return nil, problem(resp.StatusCode, raw)
	}
	a := &answer{raw: raw}
	if err := decode(raw, a); err != nil {
		return nil, fmt.Errorf("%s did not answer as a node does: %w", c.base, err)
	}
	return a, nil
}

// query starts a query; the caller reads and closes the answer.
// Without a timeout the node's own holds.
func (c *client) query(ctx context.Context, sql string, min viewkeeper.Version, timeout time.Duration, accept string) (io.ReadCloser, http.Header, error) {
	request := map[string]any{"sql": sql, "min_version": min}
	if timeout > 0 {
		request["timeout"] = timeout.String()
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {accept}}
	resp, err := c.send(ctx, http.MethodPost, "/v1/query", body, header)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		return nil, nil, problem(resp.StatusCode, raw)
	}
	return resp.Body, resp.Header, nil
}
