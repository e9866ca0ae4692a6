package fleet

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Patience bounds every wait: long enough for a slow machine, so that running
// into it is a finding and not noise.
const Patience = 3 * time.Minute

// Tools is what tests run beside the binary.
type Tools struct {
	Root    string // of the module, absolute
	Binary  string // bin/viewkeeper
	Brokers string // host:port,host:port
	t       testing.TB
}

// Find looks for the binary and for Kafka; a test that lacks one of them fails and says what to run.
func Find(t testing.TB) Tools {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("no go.mod above the test's folder")
		}
		root = filepath.Dir(root)
	}
	k := Tools{Root: root, Binary: filepath.Join(root, "bin", "viewkeeper"), Brokers: os.Getenv("KAFKA_BROKERS"), t: t}
	if k.Brokers == "" {
		t.Fatal("KAFKA_BROKERS is not set; run `make e2e`, which starts brokers")
	}
	if _, err := os.Stat(k.Binary); err != nil {
		t.Fatalf("%v; run `make e2e`, which builds it", err)
	}
	return k
}

// Jars is the folder of Kafka's jars, for clients in Java and for Kafka's own commands.
func (k Tools) Jars() string { return k.script("kafka", "jars") }

// Python is an interpreter that has a Kafka client.
func (k Tools) Python() string { return k.script("python-kafka") }

// SignalBroker sends STOP, CONT, KILL or TERM to broker i, counted from 1. It
// needs brokers that scripts/kafka started, and fails the test without them.
func (k Tools) SignalBroker(i, sig string) { k.script("kafka", "signal", i, sig) }

// StartBroker starts broker i again, with its port and its data, and waits until it listens.
func (k Tools) StartBroker(i string) { k.script("kafka", "start", i) }

func (k Tools) script(name string, args ...string) string {
	k.t.Helper()
	return strings.TrimSpace(string(Output(k.t, "", filepath.Join(k.Root, "scripts", name), args...)))
}

// Output runs a command to its end and gives what it printed; a failure ends the test.
func Output(t testing.TB, stdin, name string, args ...string) []byte {
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

// Eventually polls until ok gives nil, and fails with its last reason after Patience.
func Eventually(t testing.TB, what string, ok func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
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
			t.Fatalf("%s: not within %v: %v", what, Patience, err)
		case <-tick.C:
		}
	}
}
