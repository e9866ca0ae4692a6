// Command embed is a program that embeds a node: it follows a catalog, builds its
// definitions over a base of its own, and prints them with each change.
//
//	go run ./examples/embed 127.0.0.1:9092 flights "CREATE TABLE flights (carrier VARCHAR, dep_delay INTEGER)"
//
// The planner runs in this process, which is right for a program that trusts those
// who write definitions. One that does not takes engine.StartPlanner instead of
// duckdb.Open.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
	"github.com/viewkeeper/viewkeeper/view"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: embed BROKER CATALOG BASE-SQL")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := follow(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func follow(ctx context.Context, broker, catalog, baseSQL string) error {
	planner, err := duckdb.Open(ctx, duckdb.Options{BaseSQL: baseSQL})
	if err != nil {
		return err
	}
	base, err := registry.NewBase(ctx, planner, registry.BaseOptions{})
	if err != nil {
		return err
	}
	node, err := view.New(view.Config{
		Kafka:   viewkeeper.KafkaSettings{Brokers: []string{broker}},
		Catalog: catalog, NodeID: "embedded-1", Base: base,
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()

	err = node.WaitReady(ctx)
	for version := viewkeeper.Version(0); err == nil; err = node.WaitVersion(ctx, version+1) {
		factory := node.Current() // immutable: a whole catalog at one version
		version = factory.Version()
		for d := range factory.Definitions() {
			fmt.Println(version, d.Row.Name, d.State(), d.Columns)
		}
	}
	return errors.Join(err, <-ended, planner.Close())
}
