package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	if engine.IsChild() {
		os.Exit(engine.Main())
	}
	testscript.Main(m, map[string]func(){"viewkeeper": main})
}

// TestScripts runs the stories of testdata/script against the real binary and real
// dev processes. Beside testscript's own commands they have
//
//	dev DIR [FLAG...]   starts dev and waits until it is ready. Sets VIEWKEEPER_SERVER
//	                    to the first node, NODE1, NODE2 ... and KAFKA
//	stop DIR [SIGNAL]   stops it with SIGINT (or SIGTERM) and wants a clean end
//	exits N COMMAND...  wants the exit status N
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("VIEWKEEPER_AUTHOR", "jane")
			// A port that nobody listens at, so that a script without a dev of its own
			// never meets one that runs on this machine.
			env.Setenv("VIEWKEEPER_SERVER", "http://127.0.0.1:1")
			env.Values[devs{}] = map[string]*devProcess{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"dev":   scriptDev,
			"stop":  scriptStop,
			"exits": scriptExits,
		},
		RequireExplicitExec: true,
	})
}

// devs is the key of a script's dev processes, by directory.
type devs struct{}

type devProcess struct {
	*exec.Cmd
	ended chan struct{}
}

func processes(ts *testscript.TestScript) map[string]*devProcess {
	return ts.Value(devs{}).(map[string]*devProcess)
}

const startTimeout = 90 * time.Second

func scriptDev(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: dev DIR [FLAG...]")
	}
	dir := args[0]
	program, err := exec.LookPath("viewkeeper")
	ts.Check(err)
	cmd := exec.Command(program, append([]string{"dev", "--dir", dir, "--http", "127.0.0.1:0", "--log-level", "debug"}, args[1:]...)...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	ts.Check(cmd.Start())
	ended := make(chan struct{})
	ts.Defer(func() {
		// A script that failed leaves its dev to end here.
		_ = cmd.Process.Kill()
		<-ended
	})
	ready := make(chan bool, 1)
	go func() {
		defer close(ended)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			if strings.Contains(scan.Text(), "viewkeeper is ready") {
				ready <- true
			}
		}
		_ = cmd.Wait()
		close(ready)
	}()
	select {
	case ok := <-ready:
		if !ok {
			ts.Fatalf("dev ended: %s\n%s", complaints.String(), tail(filepath.Join(cmd.Dir, dir, "dev.log")))
		}
	case <-time.After(startTimeout):
		ts.Fatalf("dev was not ready in %s\n%s", startTimeout, tail(filepath.Join(cmd.Dir, dir, "dev.log")))
	}
	var file devFile
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(dir, "dev.json"))), &file))
	ts.Setenv("VIEWKEEPER_SERVER", "http://"+file.Nodes[0].HTTP)
	ts.Setenv("KAFKA", file.Kafka)
	for i, n := range file.Nodes {
		ts.Setenv("NODE"+strconv.Itoa(i+1), "http://"+n.HTTP)
	}
	ts.Setenv("DEV_PID", strconv.Itoa(cmd.Process.Pid))
	processes(ts)[dir] = &devProcess{cmd, ended}
}

func tail(path string) string {
	text, _ := os.ReadFile(path)
	return string(text[max(0, len(text)-4000):])
}

func scriptStop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: stop DIR [SIGNAL]")
	}
	cmd := processes(ts)[args[0]]
	if cmd == nil {
		ts.Fatalf("no dev was started in %s", args[0])
	}
	signal := syscall.SIGINT
	if len(args) > 1 && args[1] == "SIGTERM" {
		signal = syscall.SIGTERM
	}
	ts.Check(cmd.Process.Signal(signal))
	select {
	case <-cmd.ended:
	case <-time.After(startTimeout):
		ts.Fatalf("dev did not stop in %s\n%s", startTimeout, tail(filepath.Join(cmd.Dir, args[0], "dev.log")))
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		ts.Fatalf("dev ended with status %d: %s", code, cmd.Stderr)
	}
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("%s ended with status %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}
