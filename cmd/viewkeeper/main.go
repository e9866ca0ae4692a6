// Command viewkeeper keeps one catalog of SQL view definitions, with Kafka as its
// log, on every node of a fleet. One file a subcommand; this package is the only
// place that wires the parts together.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
)

func main() {
	if engine.IsChild() {
		os.Exit(engine.Main())
	}
	// The first signal asks for a clean stop; a second one ends the process at
	// once, since NotifyContext stops listening then.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop()
	}()
	code := run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}
