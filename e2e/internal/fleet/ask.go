package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

// WaitStatus waits until a GET answers with a status; a process that ends meanwhile fails the test.
func (p *Proc) WaitStatus(path string, status int) {
	p.t.Helper()
	Eventually(p.t, p.Name+" "+path, func() error {
		select {
		case <-p.Exited:
			p.t.Fatalf("%s ended by itself:\n%s", p.Name, p.tail(40))
		default:
		}
		resp, err := http.Get(p.HTTP + path)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
		if resp.StatusCode != status {
			return fmt.Errorf("status %d: %s", resp.StatusCode, text)
		}
		return nil
	})
}

// Call makes one HTTP call and decodes a JSON answer of any status into into; it gives the status.
func (p *Proc) Call(method, path string, body, into any) int {
	p.t.Helper()
	status, err := p.Try(method, path, body, into)
	if err != nil {
		p.t.Fatal(err)
	}
	return status
}

// Try is Call that gives its error: nobody answered, or not in JSON.
func (p *Proc) Try(method, path string, body, into any) (int, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	req, err := http.NewRequest(method, p.HTTP+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return 0, err
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			return 0, fmt.Errorf("%s %s: %s: %w: %s", method, path, resp.Status, err, answer)
		}
	}
	return resp.StatusCode, nil
}

// Statement issues DDL and wants it accepted (or unchanged) on the whole fleet.
func (p *Proc) Statement(sql string) viewkeeper.Decision {
	p.t.Helper()
	var d viewkeeper.Decision
	status := p.Call(http.MethodPost, "/v1/statements?wait=fleet&timeout=30s", map[string]any{"sql": sql}, &d)
	if status != http.StatusOK {
		p.t.Fatalf("%s\n%d %s %s %s", sql, status, d.Verdict, d.Code, d.Message)
	}
	return d
}

// Query gives the rows of a query at a version or later, as JSON values.
func (p *Proc) Query(sql string, min viewkeeper.Version) ([][]any, error) {
	var answer struct {
		Rows   [][]any `json:"rows"`
		Detail string  `json:"detail"`
	}
	status, err := p.Try(http.MethodPost, "/v1/query", map[string]any{"sql": sql, "min_version": min, "timeout": "30s"}, &answer)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", sql, status, answer.Detail)
	}
	return answer.Rows, err
}

// WantRows waits until a query has these rows, written as one line each.
func (p *Proc) WantRows(sql string, min viewkeeper.Version, want ...string) {
	p.t.Helper()
	rows, err := p.Query(sql, min)
	if err != nil {
		p.t.Fatalf("%s: %v", p.Name, err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, strings.Trim(fmt.Sprint(r...), "[]"))
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		p.t.Fatalf("%s: %s gives %q, want %q", p.Name, sql, got, want)
	}
}

// Definition gives the state of a definition, "" when it is not there.
func (p *Proc) Definition(name string) string {
	p.t.Helper()
	var d struct{ State string }
	if status := p.Call(http.MethodGet, "/v1/definitions/"+name, nil, &d); status == http.StatusNotFound {
		return ""
	}
	return d.State
}

// Status is what the node says of itself.
func (p *Proc) Status() viewkeeper.Status {
	p.t.Helper()
	var s viewkeeper.Status
	p.Call(http.MethodGet, "/v1/status", nil, &s)
	return s
}

// Decisions gives all decisions that a node knows, in order, once its history is complete up to a version.
func (p *Proc) Decisions(until viewkeeper.Version) []viewkeeper.Decision {
	p.t.Helper()
	var all []viewkeeper.Decision
	Eventually(p.t, p.Name+" history", func() error {
		var page struct {
			Decisions []viewkeeper.Decision `json:"decisions"`
		}
		if _, err := p.Try(http.MethodGet, "/v1/decisions?limit=10000", nil, &page); err != nil {
			return err
		}
		all = page.Decisions
		if len(all) == 0 || all[len(all)-1].Version < until {
			return fmt.Errorf("%d decisions, none of version %d yet", len(all), until)
		}
		return nil
	})
	return all
}

// SameDigests wants nodes that are at one version to have the same rows, built the same.
func SameDigests(t testing.TB, nodes ...*Proc) {
	t.Helper()
	first := nodes[0].Status()
	for _, n := range nodes[1:] {
		if s := n.Status(); s.Version == first.Version && (s.Digest != first.Digest || s.BuildDigest != first.BuildDigest) {
			t.Errorf("%s and %s differ at version %d: %s %s, %s %s", n.Name, nodes[0].Name, s.Version, s.Digest, s.BuildDigest, first.Digest, first.BuildDigest)
		}
	}
}
