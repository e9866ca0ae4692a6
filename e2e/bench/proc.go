package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Proc is one `viewkeeper serve`.
type Proc struct {
	Name   string
	HTTP   string // base URL
	Log    string // the file that holds what it printed
	Began  time.Time
	exited chan struct{}
	cmd    *exec.Cmd
	once   sync.Once
}

// Serve starts a process on the catalog and waits until it is ready (an owner
// alone: live and owning). Its data and log are under a folder of its name, so that one
// of the same name goes on from the same data. The caller stops it.
func (c *Catalog) Serve(ctx context.Context, name, roles string, extra ...string) (*Proc, error) {
	p, err := c.Launch(name, roles, extra...)
	if err != nil {
		return nil, err
	}
	path := "/readyz"
	if !strings.Contains(roles, "node") {
		path = "/livez"
	}
	if err := p.Wait(ctx, path); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Launch is Serve that does not wait.
func (c *Catalog) Launch(name, roles string, extra ...string) (*Proc, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.env.Dir, c.Name, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--brokers", c.env.Brokers, "--catalog", c.Name, "--roles", roles, "--http", addr,
		"--data-dir", filepath.Join(dir, "data"), "--base", c.Base, "--node-id", name}, extra...)
	cmd := exec.Command(c.env.Binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	p := &Proc{Name: name, HTTP: "http://" + addr, Log: log.Name(), Began: time.Now(), exited: make(chan struct{}), cmd: cmd}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go func() {
		defer close(p.exited)
		defer log.Close()
		if err := cmd.Wait(); err != nil {
			fmt.Fprintln(log, "exit:", err)
		}
	}()
	return p, nil
}

// Wait polls a path every 2 ms until it answers 200.
func (p *Proc) Wait(ctx context.Context, path string) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.HTTP+path, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err != nil {
			last = err.Error()
		} else {
			resp.Body.Close()
			if last = resp.Status; resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return fmt.Errorf("%s ended by itself:\n%s", p.Name, p.tail(20))
		case <-ctx.Done():
			return fmt.Errorf("%s did not answer %s with 200 (%s): %w\n%s", p.Name, path, last, ctx.Err(), p.tail(20))
		}
	}
}

// PID is the keeper's process id; its children are the engines.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Stop ends the process as an operator does, and waits for its end. A second call
// does nothing.
func (p *Proc) Stop() {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has ended already
		select {
		case <-p.exited:
		case <-time.After(30 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
	})
}

func (p *Proc) tail(n int) string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
