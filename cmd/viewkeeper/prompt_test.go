//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal with a process on its other side.
type terminal struct {
	t      *testing.T
	master *os.File
	lines  chan string
	seen   string
}

// openTerminal runs a command on a pseudo terminal of its own.
func openTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120}); err != nil {
		t.Fatal(err)
	}
	side, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer side.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, master: master, lines: make(chan string)}
	go func() {
		defer close(term.lines)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if n > 0 {
				term.lines <- string(buf[:n])
			}
			if err != nil { // EIO, once the process has gone
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range term.lines {
		}
		master.Close()
	})
	return term
}

// send types text.
func (x *terminal) send(text string) {
	x.t.Helper()
	if _, err := io.WriteString(x.master, text); err != nil {
		x.t.Fatal(err)
	}
}

// expect reads until the screen has shown text, after what was expected before.
func (x *terminal) expect(text string) {
	x.t.Helper()
	deadline := time.After(patience)
	for {
		if _, after, ok := strings.Cut(x.seen, text); ok {
			x.seen = after
			return
		}
		select {
		case more, ok := <-x.lines:
			if !ok {
				x.t.Fatalf("the terminal ended before %q: %q", text, x.seen)
			}
			x.seen += more
		case <-deadline:
			x.t.Fatalf("%q did not come: %q", text, x.seen)
		}
	}
}

// A node that knows one definition and accepts everything.
func promptNode(t *testing.T, asked chan<- string) string {
	t.Helper()
	const late = `{"name":"main.late","kind":"view","version":1,"columns":[{"name":"dep_delay","type":"INTEGER"}],"reads":[],"read_by":[],"state":"ok","sql":"CREATE VIEW late AS SELECT 1","comment":null,"history_length":1}`
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/definitions", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"definitions":[%s],"next":null}`, late)
	})
	mux.HandleFunc("GET /v1/definitions/late", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, late) })
	mux.HandleFunc("POST /v1/statements", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		fmt.Fprint(w, `{"statement_id":"s","version":7,"verdict":"accepted","message":"it is done"}`)
	})
	mux.HandleFunc("POST /v1/query", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		if strings.Contains(string(body), "forever") {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"columns":[{"name":"answer","type":"INTEGER"}],"rows":[[42]]}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestPrompt(t *testing.T) {
	asked := make(chan string, 1)
	program, err := exec.LookPath("viewkeeper")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "sql", "--server", promptNode(t, asked))
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "TERM=xterm")
	term := openTerminal(t, cmd)
	wantAsked := func(text string) {
		t.Helper()
		select {
		case got := <-asked:
			if !strings.Contains(got, text) {
				t.Errorf("asked %s, want %s", got, text)
			}
		case <-time.After(patience):
			t.Fatalf("%s was not asked", text)
		}
	}
	term.expect("vk> ")

	// A statement goes on until its semicolon.
	term.send("CREATE VIEW x AS\r")
	term.expect("..> ")
	term.send("SELECT ';' AS c;\r")
	wantAsked("SELECT ';' AS c;")
	term.expect("accepted at version 7: it is done")
	term.expect("vk> ")

	// What it wrote it reads.
	term.send("SELECT 42 AS answer;\r")
	wantAsked(`"min_version":7`)
	term.expect("42")
	term.expect("(1 row")
	term.expect("vk> ")

	// Names and columns are completed.
	term.send("SELECT dep_d\t FROM lat\t;\r")
	wantAsked("SELECT dep_delay FROM late;")
	term.expect("vk> ")

	// Ctrl-C gives up a line, and a query that runs, but not the prompt.
	term.send("SELECT nonsense\r")
	term.expect("..> ")
	term.send("FROM") // its echo shows that the line is being edited
	term.expect("FROM")
	term.send("\x03")
	term.expect("vk> ")
	term.send("SELECT forever;\r")
	wantAsked("forever")
	term.expect("waiting for the answer, 1 s")
	term.send("\x03")
	term.expect("interrupted")
	term.expect("vk> ")

	term.send("\\timing\r")
	term.expect("timing is on")
	// Also in the middle of a statement, but not of a literal.
	term.send("SELECT 1 AS a,\r")
	term.expect("..> ")
	term.send("\\timing\r")
	term.expect("timing is off")
	term.expect("..> ")
	term.send("'\r")
	term.expect("..> ")
	term.send("\\timing' AS b;\r")
	wantAsked(`SELECT 1 AS a,\n'\n\\timing' AS b;`)
	term.expect("vk> ")
	term.send("\\d\r")
	term.expect("main.late")
	term.send("\\d late\r")
	term.expect("dep_delay  INTEGER")
	term.send("\\nothing\r")
	term.expect("is no command")
	term.send("\\q\r")
	if err := cmd.Wait(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the prompt ended with %v", err)
	}
}
