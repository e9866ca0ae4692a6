package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/viewkeeper/viewkeeper/registry/duckdb"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
)

func main() {
	if engine.IsChild() {
		os.Exit(engine.Main())
	}
	if spec := os.Getenv(ownerEnv); spec != "" {
		if err := modelOwner(spec); err != nil {
			fmt.Fprintln(os.Stderr, "bench, as an owner:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the command line asks for.
type options struct {
	only          []string
	quick, strict bool
	json          bool
	n             int
	out, profile  string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var only string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&only, "only", "", "the figures to take, P1,P3; all when empty")
	flags.BoolVar(&o.quick, "quick", false, "2,000 definitions and fewer repetitions")
	flags.BoolVar(&o.strict, "strict", false, "a missed target is a failure")
	flags.BoolVar(&o.json, "json", false, "print the figures as JSON")
	flags.IntVar(&o.n, "n", 0, "definitions; 10,000 or, with -quick, 2,000 when 0")
	flags.StringVar(&o.out, "out", "", "a file that gets the table as well")
	flags.StringVar(&o.profile, "cpuprofile", "", "a file that gets a CPU profile of this process")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("what is %q? bench takes flags only", flags.Arg(0))
	}
	for _, id := range strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' }) {
		id = strings.ToUpper(id)
		if !slices.ContainsFunc(figures(), func(f named) bool { return f.id == id }) {
			return o, fmt.Errorf("there is no figure %s", id)
		}
		o.only = append(o.only, id)
	}
	if o.n == 0 {
		o.n = 10_000
		if o.quick {
			o.n = 2_000
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	env := &Env{Quick: o.quick, N: o.n, Brokers: os.Getenv("KAFKA_BROKERS"), Binary: filepath.Join(root, "bin", "viewkeeper")}
	if env.Brokers == "" {
		return errors.New("KAFKA_BROKERS is not set; run `make bench`, which starts a broker")
	}
	if _, err := os.Stat(env.Binary); err != nil {
		return fmt.Errorf("%w; run `make bench`, which builds it", err)
	}
	if env.Dir, err = os.MkdirTemp("", "viewkeeper-bench."); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(env.Dir)) }()
	begun := time.Now()
	env.Log = func(format string, args ...any) {
		fmt.Fprintf(stderr, "%6.1fs  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}
	engineName, err := engineIs(ctx)
	if err != nil {
		return err
	}

	if o.profile != "" {
		file, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	all, failed := take(ctx, env, o.only)
	out := stdout
	if o.out != "" {
		file, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer file.Close()
		out = io.MultiWriter(stdout, file)
	}
	if o.json {
		err = json.NewEncoder(out).Encode(map[string]any{"figures": all, "machine": env.machine(engineName)})
	} else if err = printTable(out, all); err == nil {
		_, err = fmt.Fprintf(out, "\n%s It took %v.\n", env.machine(engineName), time.Since(begun).Round(time.Second))
	}
	missed := 0
	for _, f := range all {
		if !f.Met() {
			missed++
		}
	}
	if o.strict && missed > 0 {
		err = errors.Join(err, fmt.Errorf("%d targets were missed", missed))
	}
	return errors.Join(err, failed)
}

// take measures the figures one after the other. One that fails leaves the others.
func take(ctx context.Context, env *Env, only []string) (all []Figure, failed error) {
	// Only what hangs runs into it.
	const limit = 8 * time.Minute
	for _, f := range figures() {
		if len(only) > 0 && !slices.Contains(only, f.id) {
			continue
		}
		began := time.Now()
		one, cancel := context.WithTimeout(ctx, limit)
		got, err := f.run(one, env)
		cancel()
		all = append(all, got...)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s was not measured: %w", f.id, err))
			env.Log("%s was not measured: %v", f.id, err)
		} else {
			env.Log("%s took %v", f.id, time.Since(began).Round(100*time.Millisecond))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return all, failed
}

// engineIs says which engine it is.
func engineIs(ctx context.Context) (string, error) {
	p, err := duckdb.Open(ctx, duckdb.Options{Threads: 1})
	if err != nil {
		return "", err
	}
	defer p.Close()
	e, err := p.Describe(ctx)
	if err != nil {
		return "", err
	}
	return e.Name, nil
}
