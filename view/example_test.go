package view_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
	"github.com/viewkeeper/viewkeeper/view"
)

// A program embeds a node: it follows the catalog, and has the definitions as they
// build over its own base.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kafka := exampleCatalog(ctx) // a broker, and an owner that has accepted two definitions

	planner := registrytest.NewModel(registrytest.Relation("main.flights", "carrier", "VARCHAR", "delay", "INTEGER"))
	base, _ := registry.NewBase(ctx, planner, registry.BaseOptions{})
	node, err := view.New(view.Config{Kafka: kafka, Catalog: "flights", NodeID: "reports-1", Base: base, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	_ = node.WaitReady(ctx)
	for d := range node.Current().Definitions() {
		fmt.Println(d.Row.Name, d.State(), d.Columns)
	}

	cancel()
	fmt.Println(<-done)
	// Output:
	// main.late ok [{carrier VARCHAR} {delay INTEGER}]
	// main.late_carriers ok [{carrier VARCHAR}]
	// <nil>
}

// The states are goka's own. A node becomes ready after its View has recovered the
// table, and goes on to say what it is.
func ExampleNode_ObserveStates() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kafka := exampleCatalog(ctx)

	planner := registrytest.NewModel(registrytest.Relation("main.flights", "carrier", "VARCHAR", "delay", "INTEGER"))
	base, _ := registry.NewBase(ctx, planner, registry.BaseOptions{})
	node, err := view.New(view.Config{Kafka: kafka, Catalog: "flights", NodeID: "reports-2", Base: base, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	states, stop := node.ObserveStates()
	defer stop()
	fmt.Println(<-states)

	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	for s := range states {
		if s == view.Running { // which may pass, as when brokers are slow
			fmt.Println(s)
			break
		}
	}
	_ = node.WaitReady(ctx)
	_ = node.WaitVersion(ctx, 1)
	fmt.Println("ready:", node.Status().Ready, "version:", node.Current().Version())

	cancel()
	fmt.Println(<-done)
	// Output:
	// idle
	// running
	// ready: true version: 1
	// <nil>
}

// exampleCatalog runs a broker until ctx ends, and writes what an owner writes.
func exampleCatalog(ctx context.Context) viewkeeper.KafkaSettings {
	b, err := broker.Start(ctx, "", "127.0.0.1:0")
	must(err)
	context.AfterFunc(ctx, func() { _ = b.Close() })
	settings, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{b.Addr()}})
	must(err)
	admin, err := settings.OpenAdmin(ctx)
	must(err)
	defer admin.Close()
	topics := kafka.Topics{Catalog: "flights"}
	_, err = admin.CreateTopics(ctx, topics)
	must(err)
	producer, err := sarama.NewSyncProducer(settings.Brokers, settings.Sarama())
	must(err)
	defer producer.Close()

	rows := []viewkeeper.Row{
		exampleRow("late_carriers", "SELECT DISTINCT carrier FROM late"),
		exampleRow("late", "SELECT carrier, delay FROM flights WHERE delay > 15"),
	}
	for _, r := range []codec.Record{&codec.Fence{Nonce: "1"}, &codec.Commit{Version: 1, Epoch: 1, Rows: rows}} {
		key, value := codec.EncodeRecord(r)
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topics.Table(), Key: sarama.StringEncoder(key), Value: sarama.ByteEncoder(value)})
		must(err)
	}
	return settings.KafkaSettings
}

func exampleRow(name, query string) viewkeeper.Row {
	n := viewkeeper.MakeName("", name)
	return viewkeeper.Row{Name: n, Version: 1, Epoch: 1, Definition: &viewkeeper.Definition{
		Name: n, Kind: viewkeeper.KindView, SQL: "CREATE VIEW " + name + " AS " + query, ID: 1,
	}}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
