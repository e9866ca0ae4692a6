package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
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
//	serve NAME [FLAG...] starts serve, with data in NAME, and waits until it is live. Sets
//	                    VIEWKEEPER_SERVER to it
//	halt NAME [SIGNAL]  stops either with SIGINT (or SIGTERM) and wants a clean end
//	ready URL           waits until a node is ready
//	rmtopic TOPIC       deletes a topic of the broker KAFKA
//	put TOPIC KEY VALUE writes a record past everybody
//	exits N COMMAND...  wants the exit status N
//	metrics URL         compares the metrics of a process with docs/alerts/metrics.txt
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
			env.Values[processesKey{}] = map[string]*process{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"dev":     scriptDev,
			"serve":   scriptServe,
			"halt":    scriptHalt,
			"ready":   scriptReady,
			"rmtopic": scriptRemoveTopic,
			"put":     scriptPut,
			"exits":   scriptExits,
			"metrics": scriptMetrics,
		},
		RequireExplicitExec: true,
	})
}

// processesKey is the key of a script's processes, by name.
type processesKey struct{}

type process struct {
	*exec.Cmd
	complaints *lockedBuffer
	ended      chan struct{}
}

func processes(ts *testscript.TestScript) map[string]*process {
	return ts.Value(processesKey{}).(map[string]*process)
}

// lockedBuffer is what a process wrote to its standard error.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

const patience = 4 * time.Minute

// start runs the binary in the background until a line of its output matches, and
// gives the match.
func start(ts *testscript.TestScript, name string, match *regexp.Regexp, args ...string) []string {
	program, err := exec.LookPath("viewkeeper")
	ts.Check(err)
	p := &process{Cmd: exec.Command(program, args...), complaints: &lockedBuffer{}, ended: make(chan struct{})}
	p.Dir = ts.Getenv("WORK")
	p.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	out, writer := io.Pipe()
	p.Stdout = writer
	p.Stderr = io.MultiWriter(p.complaints, writer)
	ts.Check(p.Start())
	ts.Defer(func() {
		// What a script leaves behind, as one that failed does, ends here.
		_ = p.Process.Kill()
		<-p.ended
	})
	go func() {
		defer close(p.ended)
		_ = p.Wait()
		writer.Close()
	}()
	found := make(chan []string, 1)
	go func() {
		defer close(found)
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			if m := match.FindStringSubmatch(scan.Text()); m != nil {
				found <- m
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	processes(ts)[name] = p
	select {
	case m, ok := <-found:
		if !ok {
			ts.Fatalf("%s ended: %s", name, p.complaints)
		}
		return m
	case <-time.After(patience):
		ts.Fatalf("%s was not there in %s: %s", name, patience, p.complaints)
	}
	return nil
}

func scriptDev(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: dev DIR [FLAG...]")
	}
	dir := args[0]
	start(ts, dir, regexp.MustCompile("viewkeeper is ready"),
		append([]string{"dev", "--dir", dir, "--http", "127.0.0.1:0", "--log-level", "debug"}, args[1:]...)...)
	var file devFile
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(dir, "dev.json"))), &file))
	ts.Setenv("VIEWKEEPER_SERVER", "http://"+file.Nodes[0].HTTP)
	ts.Setenv("KAFKA", file.Kafka)
	for i, n := range file.Nodes {
		ts.Setenv("NODE"+strconv.Itoa(i+1), "http://"+n.HTTP)
	}
}

func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve NAME [FLAG...]")
	}
	name := args[0]
	m := start(ts, name, regexp.MustCompile(`msg=started .*http=(\S+)`),
		append([]string{"serve", "--data-dir", name, "--node-id", name, "--http", "127.0.0.1:0"}, args[1:]...)...)
	ts.Setenv("VIEWKEEPER_SERVER", "http://"+m[1])
}

// scriptReady polls, since a process has no other way to tell another one.
func scriptReady(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ready URL")
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for deadline := time.After(patience); ; {
		resp, err := http.Get(args[0] + "/readyz")
		if err == nil {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
			last = string(text)
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s was not ready in %s: %v %s", args[0], patience, err, last)
		}
	}
}

func scriptRemoveTopic(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: rmtopic TOPIC")
	}
	settings, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{ts.Getenv("KAFKA")}})
	ts.Check(err)
	admin, err := sarama.NewClusterAdmin(settings.Brokers, settings.Sarama())
	ts.Check(err)
	ts.Check(admin.DeleteTopic(args[0]))
	ts.Check(admin.Close())
}

func scriptPut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: put TOPIC KEY VALUE")
	}
	settings, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{ts.Getenv("KAFKA")}})
	ts.Check(err)
	p, err := sarama.NewSyncProducer(settings.Brokers, settings.Sarama())
	ts.Check(err)
	_, _, err = p.SendMessage(&sarama.ProducerMessage{Topic: args[0], Key: sarama.StringEncoder(args[1]), Value: sarama.StringEncoder(args[2])})
	ts.Check(err)
	ts.Check(p.Close())
}

func scriptHalt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: halt NAME [SIGNAL]")
	}
	p := processes(ts)[args[0]]
	if p == nil {
		ts.Fatalf("nothing was started as %s", args[0])
	}
	signal := syscall.SIGINT
	if len(args) > 1 && args[1] == "SIGTERM" {
		signal = syscall.SIGTERM
	}
	ts.Check(p.Process.Signal(signal))
	select {
	case <-p.ended:
	case <-time.After(patience):
		ts.Fatalf("%s did not stop in %s: %s", args[0], patience, p.complaints)
	}
	if code := p.ProcessState.ExitCode(); code != 0 {
		ts.Fatalf("%s ended with status %d: %s", args[0], code, p.complaints)
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
