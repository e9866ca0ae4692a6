package processor_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/processor"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// A process that owns a catalog. The broker is the embedded one, and the planner a
// small one in plain Go; with registry/duckdb it is the real one.
func ExampleProcessor_Run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b, err := broker.Start(ctx, "", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer b.Close()
	settings, emit := topics(ctx, b.Addr())
	log := slog.New(slog.NewTextHandler(io.Discard, nil))

	base, err := registry.NewBase(ctx, registrytest.NewModel(registrytest.Relation("main.flights", "carrier", "VARCHAR")), registry.BaseOptions{Log: log})
	if err != nil {
		panic(err)
	}
	p, err := processor.New(processor.Config{Kafka: settings, Catalog: "flights", NodeID: "node-1", Base: base, Log: log})
	if err != nil {
		panic(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()

	emit("main.carriers", "CREATE VIEW carriers AS SELECT carrier FROM flights")
	emit("main.broken", "CREATE VIEW broken AS SELECT delay FROM flights")
	s, err := p.WaitStatus(ctx, func(s processor.Status) bool { return s.Version == 2 })
	fmt.Println(s.State, s.Version, err)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// owner 2 <nil>
	// <nil>
}

// topics makes the catalog's topics, and gives a way to write a statement.
func topics(ctx context.Context, addr string) (viewkeeper.KafkaSettings, func(key, sql string)) {
	k := viewkeeper.KafkaSettings{Brokers: []string{addr}}
	s, err := kafka.NewSettings(k)
	if err != nil {
		panic(err)
	}
	admin, err := s.OpenAdmin(ctx)
	if err != nil {
		panic(err)
	}
	defer admin.Close()
	t := kafka.Topics{Catalog: "flights"}
	if _, err := admin.CreateTopics(ctx, t); err != nil {
		panic(err)
	}
	return k, func(key, sql string) {
		e := s.NewEmitter(t)
		defer e.Close()
		if _, err := e.Emit(ctx, viewkeeper.Submission{Key: key, SQL: sql}); err != nil {
			panic(err)
		}
	}
}
