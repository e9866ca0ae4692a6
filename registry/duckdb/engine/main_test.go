package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// keeperForTest is a keeper that starts an engine, says where its socket is, and
// then waits to be killed.
func keeperForTest() {
	s, err := StartServer(context.Background(), Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.supervisor.current.socket)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// A child ends with its keeper, however that dies. That the child is gone is seen
// by its side of a connection.
func TestChildEndsWithItsKeeper(t *testing.T) {
	keeper := exec.Command(os.Args[0])
	keeper.Env = append(os.Environ(), envTestKeeper+"=1")
	keeper.Stderr = os.Stderr
	stdin, err := keeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := keeper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	socket, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	socket = socket[:len(socket)-1]
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := keeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = keeper.Wait()
	killed := time.Now()
	_ = conn.SetReadDeadline(killed.Add(time.Minute))
	if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("the child did not end with its keeper: %d, %v", n, err)
	}
	t.Logf("the child ended %s after its keeper", time.Since(killed))
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("its socket is still there: %v", err)
	}
}

func TestMainByHand(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || len(out) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
}

func TestNoEngineInsideAnEngine(t *testing.T) {
	t.Setenv(envChild, "1")
	if _, err := StartServer(context.Background(), Config{}); err == nil {
		t.Fatal("an engine started an engine")
	}
}

func TestErrorInTheBaseIsTheStartsError(t *testing.T) {
	_, err := StartServer(context.Background(), testConfig(t, func(c *Config) {
		c.Options = duckdb.Options{BaseSQL: "CREATE TABLE t (i nonsense)"}
	}))
	if err == nil {
		t.Fatal("it started")
	}
	t.Log(err)
}
