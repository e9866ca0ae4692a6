package engine

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// process is one child, from its start to its end, as the keeper sees it. Its end
// is always noticed, and always has a reason that can be told.
type process struct {
	cmd    *exec.Cmd
	socket string
	life   *os.File // the keeper's end of the life pipe
	log    *slog.Logger

	started    time.Time
	exited     chan struct{}       // closed when the process is gone
	lost       *registry.LostError // how it ended; set before exited is closed
	peak       int64               // its largest resident size in bytes, 0 when not known; set before exited is closed
	retired    chan struct{}       // closed when it is to be replaced
	retirement string              // why; set before retired is closed

	mu       sync.Mutex
	killed   *registry.LostError // why it was killed, nil when it was not
	retiring bool
	links    []*link       // connections that no call is on
	inflight int           // calls under way
	idle     chan struct{} // closed when inflight falls to 0; nil while nobody waits for it
}

// startProcess starts a child with a socket at path.
func startProcess(cfg Config, r role, path string) (*process, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("engine: a socket for it at %s: %w", path, err)
	}
	// The child accepts on an inherited copy. The keeper's own is closed here, so
	// that after the child's death nothing queues up behind a socket nobody reads.
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	inherited, err := listener.File()
	if err != nil {
		return nil, err
	}
	defer inherited.Close()
	lifeRead, lifeWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeRead.Close()
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		lifeWrite.Close()
		return nil, err
	}
	defer errWrite.Close()

	cmd := exec.Command(executable(), "engine", string(r))
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(childEnvironment(), envChild+"=1", "GOTRACEBACK=single")
	if cfg.faults {
		cmd.Env = append(cmd.Env, envFaults+"=1")
	}
	cmd.Stdout, cmd.Stderr = errWrite, errWrite
	cmd.ExtraFiles = []*os.File{inherited, lifeRead} // listenerFD, lifeFD
	if err := cmd.Start(); err != nil {
		lifeWrite.Close()
		errRead.Close()
		return nil, fmt.Errorf("engine: it could not be started: %w", err)
	}
	p := &process{
		cmd: cmd, socket: path, life: lifeWrite, log: cfg.Log.With("pid", cmd.Process.Pid),
		started: time.Now(), exited: make(chan struct{}), retired: make(chan struct{}),
	}
	go p.watch(cfg, errRead)
	return p, nil
}

// childEnvironment is what a child sees of the keeper's environment: what its
// runtime and libraries need, and no secrets. It is the process that runs anybody's
// SQL.
func childEnvironment() []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
		"GODEBUG", "GOMAXPROCS", "GORACE", "GOCOVERDIR",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// executable is this very program, also when its file was replaced since.
func executable() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// watch goes with the process to its end: its standard error, its resident size,
// its death. It is the owner of all of the process's goroutines.
func (p *process) watch(cfg Config, stderr *os.File) {
	limit := cfg.ResidentLimit
	last := make(chan []string)
	go func() { last <- p.follow(stderr) }()
	stop := make(chan struct{})
	watchdog := make(chan struct{})
	go func() {
		defer close(watchdog)
		watchResident(p.cmd.Process.Pid, limit, stop, func(size int64) {
			p.kill(&registry.LostError{Detail: fmt.Sprintf("killed: resident memory %s over the limit of %s", bytesText(size), bytesText(limit))})
		})
	}()
	err := p.cmd.Wait()
	close(stop)
	<-watchdog
	lines := <-last
	p.life.Close()
	_ = os.Remove(p.socket)
	p.peak = peakResident(p.cmd.ProcessState)

	p.mu.Lock()
	if p.lost = p.killed; p.lost == nil {
		p.lost = &registry.LostError{Detail: deathText(err, lines)}
	}
	for _, l := range p.links {
		l.conn.Close()
	}
	p.links = nil
	p.mu.Unlock()
	cfg.ended(p)
	close(p.exited)
}

// follow logs what the child writes and gives the lines that may say why it died:
// the first ones, or those where a crash begins. A crash prints every thread; the
// beginning shows where it was.
func (p *process) follow(stderr *os.File) []string {
	defer stderr.Close()
	const most = 40
	var kept []string
	crashed := false
	reader := bufio.NewReaderSize(stderr, 4096)
	for n := 0; ; {
		line, long, err := reader.ReadLine()
		if err != nil {
			return kept
		}
		if long {
			for more := true; more && err == nil; {
				_, more, err = reader.ReadLine()
			}
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			if !crashed && beginsCrash(text) {
				crashed, n, kept = true, 0, nil
			}
			if n++; n <= most {
				p.log.Warn("from the engine: " + text)
			}
			if len(kept) < 3 {
				kept = append(kept, text)
			}
		}
	}
}

// beginsCrash reports whether a line is the first of what Go's or C++'s runtime
// says at a crash.
func beginsCrash(line string) bool {
	for _, prefix := range []string{"SIG", "fatal error:", "panic:", "runtime:", "unexpected fault", "terminate called", "libc++abi:"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// kill ends the process for a reason; the first reason counts.
func (p *process) kill(reason *registry.LostError) {
	p.mu.Lock()
	if p.killed == nil {
		p.killed = reason
	}
	p.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.log.Error("engine: it could not be killed", "error", err)
	}
}

// lostTimeout bounds the wait for the death of a child that broke a connection.
const lostTimeout = 2 * time.Second

// lostError is the error of a call whose connection broke: how the process ended.
// One that lives on after that is of no use any more.
func (p *process) lostError(cause error) *registry.LostError {
	timer := time.NewTimer(lostTimeout)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.kill(&registry.LostError{Detail: fmt.Sprintf("killed: its connection broke: %v", cause)})
		<-p.exited
	}
	return p.lost
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// retire has the supervisor replace the process; the first reason counts.
func (p *process) retire(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.retiring {
		p.retiring, p.retirement = true, reason
		close(p.retired)
	}
}

// note looks at an error that the engine gave, and gives it back. The process lives
// on after an engine that ran out of its memory or found itself broken, but is of no
// use any more: DuckDB does not give back what it has.
func (p *process) note(err error) error {
	if lost := registry.AsLost(err); lost != nil {
		p.retire(lost.Detail)
	} else if outOfMemory(err) {
		p.retire("its engine ran out of memory")
	}
	return err
}

// outOfMemory reports whether an error is an engine's that had no memory left for a
// query. Whose memory it was is not told: all queries of an engine share its limit.
func outOfMemory(err error) bool {
	var plan *registry.PlanError
	return errors.As(err, &plan) && plan.Code == duckdb.CodeMemory
}

// leaving reports whether the process is gone or about to be.
func (p *process) leaving() bool {
	select {
	case <-p.exited:
		return true
	case <-p.retired:
		return true
	default:
		return false
	}
}

// enter counts a call in, unless the process is gone or about to be. leave counts
// it out.
func (p *process) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving() {
		return false
	}
	p.inflight++
	return true
}

func (p *process) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inflight--
	if p.inflight == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// whenIdle gives a channel that is closed when no call is under way.
func (p *process) whenIdle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inflight == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	return p.idle
}

// deathText says how a process ended that nobody here killed.
func deathText(err error, lines []string) string {
	text := "it exited by itself"
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		text = exit.ProcessState.String()
	} else if err != nil {
		text = err.Error()
	}
	if len(lines) > 0 {
		text += ": " + strings.Join(lines, "; ")
	}
	return text
}

// bytesText prints a size with two digits.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	default:
		return fmt.Sprintf("%d MiB", n>>20)
	}
}

// socketDir makes the private folder that a keeper's sockets for one engine are in.
func socketDir() (string, error) {
	dir, err := os.MkdirTemp("", "viewkeeper-")
	if err != nil {
		return "", fmt.Errorf("engine: a folder for its socket: %w", err)
	}
	// sockaddr_un has 108 bytes on Linux, 104 elsewhere.
	if path := filepath.Join(dir, "9999.sock"); len(path) > 100 {
		_ = os.Remove(dir)
		return "", fmt.Errorf("engine: %s is too long for the path of a socket; set TMPDIR to a shorter folder", path)
	}
	return dir, nil
}
