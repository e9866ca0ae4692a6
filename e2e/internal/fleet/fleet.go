package fleet

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper/internal/freeport"
)

// Fleet is one catalog with the processes that serve it.
type Fleet struct {
	Tools   Tools
	Brokers string // what processes are told; Kafka's own addresses, or a proxy's
	Catalog string
	Dir     string           // of logs and data, removed after the test
	Base    string           // the SQL file that every process starts with
	Procs   map[string]*Proc // the last process of each name
	t       testing.TB
}

// New makes a catalog of its own, with its topics, and a base of one table t
// (a INTEGER, b VARCHAR, ts TIMESTAMP) of two rows.
func New(t testing.TB) *Fleet {
	t.Helper()
	return NewOn(t, Find(t).Brokers)
}

// NewOn is New on other brokers than those of $KAFKA_BROKERS.
func NewOn(t testing.TB, brokers string) *Fleet {
	t.Helper()
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	f := &Fleet{t: t, Tools: Find(t), Catalog: "t" + hex.EncodeToString(id), Dir: t.TempDir(), Procs: map[string]*Proc{}}
	f.Tools.Brokers, f.Brokers = brokers, brokers
	f.Base = filepath.Join(f.Dir, "base.sql")
	f.Write(f.Base, `CREATE TABLE t (a INTEGER, b VARCHAR, ts TIMESTAMP); INSERT INTO t VALUES (1, 'one', '2013-01-01'), (2, 'two', '2013-01-02');`)
	f.Viewkeeper("topics", "create", "--brokers", f.Tools.Brokers, "--catalog", f.Catalog)
	t.Cleanup(func() {
		for _, p := range f.Procs {
			p.Stop()
		}
	})
	return f
}

// Write makes a file and its folders.
func (f *Fleet) Write(path, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// Viewkeeper runs a subcommand that must succeed, and gives what it printed.
func (f *Fleet) Viewkeeper(args ...string) string {
	f.t.Helper()
	return string(Output(f.t, "", f.Tools.Binary, args...))
}

// Topic is the catalog's topic of a short name: definitions, table, decisions, nodes.
func (f *Fleet) Topic(name string) string { return "viewkeeper." + f.Catalog + "-" + name }

// Proc is one `viewkeeper serve`.
type Proc struct {
	Name   string
	HTTP   string        // base URL
	Log    string        // the file that holds what it printed, over restarts
	Exited chan struct{} // closed when it has ended
	cmd    *exec.Cmd
	once   sync.Once
	t      testing.TB
}

// Serve starts a process of the fleet under a name, which keeps its address and
// its data over restarts, and waits until it is ready (an owner alone: live).
// More flags of `viewkeeper serve` can be given; they win over those of the fleet.
func (f *Fleet) Serve(name, roles string, extra ...string) *Proc {
	f.t.Helper()
	p := f.Launch(name, roles, extra...)
	path := "/readyz"
	if !strings.Contains(roles, "node") {
		path = "/livez"
	}
	p.WaitStatus(path, http.StatusOK)
	return p
}

// Launch is Serve that does not wait.
func (f *Fleet) Launch(name, roles string, extra ...string) *Proc {
	f.t.Helper()
	addr := freeport.Addr(f.t)
	if old := f.Procs[name]; old != nil {
		addr = strings.TrimPrefix(old.HTTP, "http://")
	}
	log, err := os.OpenFile(filepath.Join(f.Dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		f.t.Fatal(err)
	}
	args := append([]string{"serve", "--brokers", f.Brokers, "--catalog", f.Catalog, "--roles", roles, "--http", addr,
		"--data-dir", filepath.Join(f.Dir, name), "--base", f.Base, "--node-id", name}, extra...)
	cmd := exec.Command(f.Tools.Binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	p := &Proc{t: f.t, Name: name, HTTP: "http://" + addr, Log: log.Name(), Exited: make(chan struct{}), cmd: cmd}
	go func() {
		// How it ended is in its log; the tests ask whether it lives.
		if err := cmd.Wait(); err != nil {
			fmt.Fprintln(log, "exit:", err)
		}
		log.Close()
		close(p.Exited)
	}()
	f.Procs[name] = p
	return p
}

// Stop ends a process as an operator does, and waits for its end. In a test that
// failed it shows the end of the process's log. A second call does nothing.
func (p *Proc) Stop() {
	p.once.Do(func() {
		if p.t.Failed() {
			p.t.Logf("the end of %s's log:\n%s", p.Name, p.tail(60))
		}
		p.Signal(syscall.SIGCONT) // a frozen process would never hear of it
		p.Signal(syscall.SIGTERM)
		select {
		case <-p.Exited:
		case <-time.After(Patience):
			p.t.Errorf("%s did not stop within %v of SIGTERM", p.Name, Patience)
			p.Signal(syscall.SIGKILL)
			<-p.Exited
		}
	})
}

// Kill ends a process as the machine's death does.
func (p *Proc) Kill() {
	p.once.Do(func() {
		p.Signal(syscall.SIGKILL)
		<-p.Exited
	})
}

// Signal sends a signal; one that has ended already does not mind.
func (p *Proc) Signal(s os.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

func (p *Proc) tail(n int) string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// PID is the process id of a keeper; its children are the engines.
func (p *Proc) PID() int { return p.cmd.Process.Pid }
