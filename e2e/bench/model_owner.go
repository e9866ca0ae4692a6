package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/processor"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// modelBase is a base over a model planner of its own, which plans a definition in some
// ten microseconds: with it what a hundred nodes cost is what following costs.
func modelBase(ctx context.Context) (*registry.Base, error) {
	planner := registrytest.NewModel(registrytest.Relation("main.t", "id", "BIGINT", "region", "VARCHAR", "day", "DATE", "amount", "DOUBLE", "n", "BIGINT"))
	return registry.NewBase(ctx, planner, registry.BaseOptions{Log: slog.New(slog.DiscardHandler)})
}

// modelStatements are n definitions that the model plans.
func modelStatements(n int) []string {
	out := make([]string, n)
	for i := range out {
		source := "t"
		if i%2 == 1 {
			source = fmt.Sprint("v", i/2)
		}
		out[i] = fmt.Sprintf("CREATE VIEW v%d AS SELECT id, region, day, amount * %d AS amount, n FROM %s WHERE amount > %d", i, 1+i%7, source, i)
	}
	return out
}

// ownerEnv names a process of this binary as the owner of a catalog over modelBase.
const ownerEnv = "VIEWKEEPER_BENCH_OWNER"

// modelOwner is the main function of such a process: it owns the catalog until its
// standard input ends, and answers each line there with the time that it has had of
// the processors, in microseconds.
func modelOwner(spec string) error {
	brokers, catalog, _ := strings.Cut(spec, " ")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	base, err := modelBase(ctx)
	if err != nil {
		return err
	}
	p, err := processor.New(processor.Config{
		Kafka: viewkeeper.KafkaSettings{Brokers: strings.Split(brokers, ",")}, Catalog: catalog, NodeID: "owner", Base: base,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			fmt.Println(int64(cpuTime() / time.Microsecond))
		}
		cancel()
	}()
	return <-done
}

// cpuTime is what this process has had of the processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// owning is a running modelOwner.
type owning struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// OwnModel starts the owner of a catalog over modelBase.
func (c *Catalog) OwnModel() (*owning, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), ownerEnv+"="+c.env.Brokers+" "+c.Name)
	log, err := os.CreateTemp(c.env.Dir, "owner*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &owning{cmd, stdin, bufio.NewScanner(stdout)}, cmd.Start()
}

// CPU is what the owner has had of the processors until now.
func (o *owning) CPU() (time.Duration, error) {
	if _, err := fmt.Fprintln(o.stdin); err != nil {
		return 0, err
	}
	if !o.lines.Scan() {
		return 0, errors.Join(errors.New("the owner has ended"), o.lines.Err())
	}
	var us int64
	_, err := fmt.Sscan(o.lines.Text(), &us)
	return time.Duration(us) * time.Microsecond, err
}

// Stop ends it.
func (o *owning) Stop() error {
	return errors.Join(o.stdin.Close(), o.cmd.Wait())
}
