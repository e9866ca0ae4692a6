// Package e2e runs the binary as a fleet on real Apache Kafka, with the clients
// that people have. $KAFKA_BROKERS says where it is; `make e2e` starts one.
package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// patience bounds every wait: long enough for a slow machine, so that running
// into it is a finding and not noise.
const patience = 60 * time.Second

// tools is what the tests run beside the binary.
type tools struct{ binary, brokers, jars, python, root string }

func findTools(t *testing.T) tools {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	k := tools{binary: filepath.Join(root, "bin", "viewkeeper"), brokers: os.Getenv("KAFKA_BROKERS"), root: root}
	if k.brokers == "" {
		t.Fatal("KAFKA_BROKERS is not set; run `make e2e`, which starts a broker")
	}
	if _, err := os.Stat(k.binary); err != nil {
		t.Fatalf("%v; run `make e2e`, which builds it", err)
	}
	k.jars = strings.TrimSpace(string(output(t, "", filepath.Join(root, "scripts", "kafka"), "jars")))
	k.python = strings.TrimSpace(string(output(t, "", filepath.Join(root, "scripts", "python-kafka"))))
	return k
}

// output runs a command to its end and gives what it printed; a failure ends the test.
func output(t *testing.T, stdin, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out
}

// fleet is one catalog with the processes that serve it.
type fleet struct {
	t       *testing.T
	tools   tools
	catalog string
	dir     string
	base    string
	procs   map[string]*proc
}

// newFleet makes a catalog of its own, with its topics, so that tests do not meet.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, tools: findTools(t), catalog: "t" + hex.EncodeToString(id), dir: t.TempDir(), procs: map[string]*proc{}}
	f.base = filepath.Join(f.dir, "base.sql")
	f.write(f.base, `CREATE TABLE t (a INTEGER, b VARCHAR, ts TIMESTAMP); INSERT INTO t VALUES (1, 'one', '2013-01-01'), (2, 'two', '2013-01-02');`)
	f.viewkeeper("topics", "create", "--brokers", f.tools.brokers, "--catalog", f.catalog)
	t.Cleanup(func() {
		for _, p := range f.procs {
			p.stop()
		}
	})
	return f
}

func (f *fleet) write(path, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// viewkeeper runs a subcommand that must succeed.
func (f *fleet) viewkeeper(args ...string) string {
	f.t.Helper()
	return string(output(f.t, "", f.tools.binary, args...))
}

func (f *fleet) topic(name string) string { return "viewkeeper." + f.catalog + "-" + name }

// proc is one `viewkeeper serve`.
type proc struct {
	t      *testing.T
	name   string
	http   string // base URL
	cmd    *exec.Cmd
	exited chan struct{}
	once   sync.Once
	log    *os.File
}

// serve starts a process of the fleet under a name, which keeps its address and
// its data over restarts, and waits until it is ready (an owner alone: live).
func (f *fleet) serve(name, roles string, extra ...string) *proc {
	f.t.Helper()
	p := f.launch(name, roles, extra...)
	path := "/readyz"
	if !strings.Contains(roles, "node") {
		path = "/livez"
	}
	p.waitStatus(path, http.StatusOK)
	return p
}

// launch starts a process and does not wait for it.
func (f *fleet) launch(name, roles string, extra ...string) *proc {
	f.t.Helper()
	addr := freeAddr(f.t)
	if old := f.procs[name]; old != nil {
		addr = strings.TrimPrefix(old.http, "http://")
	}
	log, err := os.OpenFile(filepath.Join(f.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		f.t.Fatal(err)
	}
	args := append([]string{"serve", "--brokers", f.tools.brokers, "--catalog", f.catalog, "--roles", roles, "--http", addr,
		"--data-dir", filepath.Join(f.dir, name), "--base", f.base, "--node-id", name}, extra...)
	cmd := exec.Command(f.tools.binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	p := &proc{t: f.t, name: name, http: "http://" + addr, cmd: cmd, exited: make(chan struct{}), log: log}
	go func() {
		// How it ended is in its log; the tests ask whether it lives.
		if err := cmd.Wait(); err != nil {
			fmt.Fprintln(log, "exit:", err)
		}
		close(p.exited)
	}()
	f.procs[name] = p
	return p
}

// stop ends a process as an operator does, and waits for its end.
func (p *proc) stop() {
	p.once.Do(func() {
		if p.t.Failed() {
			if text, err := os.ReadFile(p.log.Name()); err == nil {
				p.t.Logf("the end of %s's log:\n%s", p.name, tail(string(text), 60))
			}
		}
		p.signal(syscall.SIGTERM)
		select {
		case <-p.exited:
		case <-time.After(patience):
			p.t.Errorf("%s did not stop within %v of SIGTERM", p.name, patience)
			p.signal(syscall.SIGKILL)
			<-p.exited
		}
	})
}

// kill ends a process as the machine's death does.
func (p *proc) kill() {
	p.once.Do(func() {
		p.signal(syscall.SIGKILL)
		<-p.exited
	})
}

func (p *proc) signal(s os.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

func tail(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// eventually polls until ok gives nil, and fails with its last reason.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		case <-tick.C:
		}
	}
}

func (p *proc) waitStatus(path string, status int) {
	p.t.Helper()
	eventually(p.t, p.name+" "+path, func() error {
		select {
		case <-p.exited:
			text, err := os.ReadFile(p.log.Name())
			p.t.Fatalf("%s ended by itself (%v):\n%s", p.name, err, tail(string(text), 40))
		default:
		}
		resp, err := http.Get(p.http + path)
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

// call makes one HTTP call and decodes a JSON answer of any status into into.
func (p *proc) call(method, path string, body, into any) int {
	p.t.Helper()
	status, err := p.try(method, path, body, into)
	if err != nil {
		p.t.Fatal(err)
	}
	return status
}

func (p *proc) try(method, path string, body, into any) (int, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	req, err := http.NewRequest(method, p.http+path, bytes.NewReader(text))
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

// statement issues DDL and wants it accepted (or unchanged) on the whole fleet.
func (p *proc) statement(sql string) viewkeeper.Decision {
	p.t.Helper()
	var d viewkeeper.Decision
	status := p.call(http.MethodPost, "/v1/statements?wait=fleet&timeout=30s", map[string]any{"sql": sql}, &d)
	if status != http.StatusOK {
		p.t.Fatalf("%s\n%d %s %s %s", sql, status, d.Verdict, d.Code, d.Message)
	}
	return d
}

// query gives the rows of a query at a version or later, as JSON values.
func (p *proc) query(sql string, min viewkeeper.Version) ([][]any, error) {
	var answer struct {
		Rows   [][]any `json:"rows"`
		Detail string  `json:"detail"`
	}
	status, err := p.try(http.MethodPost, "/v1/query", map[string]any{"sql": sql, "min_version": min, "timeout": "30s"}, &answer)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", sql, status, answer.Detail)
	}
	return answer.Rows, err
}

// wantRows waits until a query has these rows, written as one line each.
func (p *proc) wantRows(sql string, min viewkeeper.Version, want ...string) {
	p.t.Helper()
	rows, err := p.query(sql, min)
	if err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, strings.Trim(fmt.Sprint(r...), "[]"))
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		p.t.Fatalf("%s: %s gives %q, want %q", p.name, sql, got, want)
	}
}

// definition gives the state of a definition, "" when it is not there.
func (p *proc) definition(name string) string {
	p.t.Helper()
	var d struct{ State string }
	if status := p.call(http.MethodGet, "/v1/definitions/"+name, nil, &d); status == http.StatusNotFound {
		return ""
	}
	return d.State
}

// decisions gives all decisions that a node knows, in order, once its history is complete up to a version.
func (p *proc) decisions(until viewkeeper.Version) []viewkeeper.Decision {
	p.t.Helper()
	var all []viewkeeper.Decision
	eventually(p.t, p.name+" history", func() error {
		var page struct {
			Decisions []viewkeeper.Decision `json:"decisions"`
		}
		if _, err := p.try(http.MethodGet, "/v1/decisions?limit=10000", nil, &page); err != nil {
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
