package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
)

func (a *app) devCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything here: a durable broker, an owner and nodes",
		Long: `dev runs everything in one process tree: an embedded broker that speaks Kafka and
keeps its data in --dir, the owner, and nodes that count up from --http. When all
nodes are ready it writes DIR/dev.json with the addresses, and prints them with what to
try. Ctrl-C stops it cleanly; the same --dir continues where it stopped. The log
goes to DIR/dev.log.

It is for trying out and for tests. A fleet runs 'viewkeeper serve' on real Kafka.`,
		Example: `  viewkeeper dev
  viewkeeper dev --base base.sql --lake ./parquet --nodes 3
  viewkeeper dev --dir ~/vk --http 127.0.0.1:0 --kafka 127.0.0.1:9092`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dev(cmd.Context()) },
	}
	a.use(cmd.Flags(), append(roleSettings(), "dir", "nodes", "kafka")...)
	return cmd
}

// devCatalog is the catalog's name in dev when none is given.
const devCatalog = "dev"

// devFile is the content of DIR/dev.json.
type devFile struct {
	Kafka   string    `json:"kafka"`
	Catalog string    `json:"catalog"`
	PID     int       `json:"pid"`
	Nodes   []devNode `json:"nodes"`
}

type devNode struct {
	Node string `json:"node"`
	HTTP string `json:"http"`
}

func (a *app) dev(ctx context.Context) error {
	if a.Catalog == "" {
		a.Catalog = devCatalog
	}
	if err := viewkeeper.CatalogName(a.Catalog); err != nil {
		return usagef("--catalog: %w", err)
	}
	if err := os.MkdirAll(a.Dir, 0o755); err != nil {
		return usagef("--dir: %w", err)
	}
	logFile, err := os.OpenFile(filepath.Join(a.Dir, "dev.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return usagef("--dir: %w", err)
	}
	defer logFile.Close()
	log := a.loggerTo(logFile)
	engines, err := a.engineConfig(log)
	if err != nil {
		return err
	}
	shown := a.startProgress("starting")
	defer shown.stop()
	b, err := a.startBroker(ctx, log)
	if err != nil {
		return err
	}
	// The broker holds the directory's lock until here: the file is ours.
	ready := filepath.Join(a.Dir, "dev.json")
	defer func() {
		if err := errors.Join(removeFile(ready), b.Close()); err != nil {
			fmt.Fprintf(a.err, "viewkeeper: stopping: %v\n", err)
		}
	}()
	if err := removeFile(ready); err != nil {
		return err
	}
	if err := a.createDevTopics(ctx, b.Addr()); err != nil {
		return err
	}
	return a.devRun(ctx, b.Addr(), ready, engines, log, shown)
}

// startBroker starts the embedded broker. Without a port it takes the one of the
// last run again when that is free, so that clients' settings stay good.
func (a *app) startBroker(ctx context.Context, log *slog.Logger) (*broker.Broker, error) {
	dir := filepath.Join(a.Dir, "kafka")
	last := filepath.Join(a.Dir, "kafka.addr")
	addr := a.Kafka
	if host, port, err := net.SplitHostPort(addr); err == nil && port == "0" {
		if text, err := os.ReadFile(last); err == nil && isFree(strings.TrimSpace(string(text)), host) {
			addr = strings.TrimSpace(string(text))
		}
	}
	b, err := broker.StartWith(ctx, broker.Options{Dir: dir, Addr: addr, Log: log})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(last, []byte(b.Addr()+"\n"), 0o644); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// isFree reports whether an address of a host can be listened at.
func isFree(addr, host string) bool {
	if h, _, err := net.SplitHostPort(addr); err != nil || h != host {
		return false
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (a *app) createDevTopics(ctx context.Context, addr string) error {
	settings, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{addr}})
	if err != nil {
		return err
	}
	admin, err := settings.OpenAdmin(ctx)
	if err != nil {
		return err
	}
	_, err = admin.CreateTopics(ctx, kafka.Topics{Catalog: a.Catalog})
	return errors.Join(err, admin.Close())
}

// devRun runs owner and nodes until ctx ends or one of them can't go on.
func (a *app) devRun(ctx context.Context, addr, ready string, cfg engine.Config, log *slog.Logger, shown *progress) error {
	settings := viewkeeper.KafkaSettings{Brokers: []string{addr}}
	listeners, err := a.devListeners()
	if err != nil {
		return err
	}
	file := devFile{Kafka: addr, Catalog: a.Catalog, PID: os.Getpid()}
	stopped := ctx // ends when dev is told to stop; the group's also when a part fails
	group, ctx := errgroup.WithContext(ctx)
	var nodes []*node
	fail := func(err error) error {
		// What was started stops with the group's context.
		group.Go(func() error { return err })
		if err := group.Wait(); stopped.Err() == nil {
			return err
		}
		return nil
	}
	for i, l := range listeners {
		id := fmt.Sprintf("node-%d", i+1)
		spec := ownerSpec{kafka: settings, catalog: a.Catalog, id: id, engine: cfg, metrics: newMetrics(), log: log}
		var judging *owner
		if i == 0 {
			o, err := a.newOwner(ctx, spec)
			if err != nil {
				return fail(err)
			}
			judging = o
			group.Go(func() error { return o.run(ctx) })
		}
		n, err := a.newNode(ctx, nodeSpec{
			ownerSpec: spec, listener: l, advertise: l.Addr().String(), dataDir: filepath.Join(a.Dir, id),
		})
		if err != nil {
			return fail(err)
		}
		group.Go(func() error { return n.run(ctx) })
		if judging != nil {
			group.Go(func() error { tellNode(ctx, judging.Processor, n.Node); return nil })
		}
		nodes = append(nodes, n)
		file.Nodes = append(file.Nodes, devNode{Node: id, HTTP: l.Addr().String()})
	}
	group.Go(func() error {
		for _, n := range nodes {
			err := waitForNode(ctx, n, devPatience, func(text string) {
				shown.say("viewkeeper: %s; the log is %s", text, filepath.Join(a.Dir, "dev.log"))
			})
			if err != nil {
				return nil // stopped, or failed elsewhere
			}
		}
		shown.stop()
		if err := writeDevFile(ready, file); err != nil {
			return err
		}
		a.printDev(file)
		<-ctx.Done()
		return nil
	})
	if err := group.Wait(); err != nil && stopped.Err() == nil {
		return fmt.Errorf("dev can't go on: %w; its log is %s", err, filepath.Join(a.Dir, "dev.log"))
	}
	fmt.Fprintln(a.err, "stopped; the same --dir continues here")
	return nil
}

// devListeners opens the nodes' addresses: they count up from --http, or all take a
// free port when it has port 0.
func (a *app) devListeners() (listeners []net.Listener, err error) {
	host, port, err := net.SplitHostPort(a.HTTP)
	first := 0
	if err == nil {
		first, err = strconv.Atoi(port)
	}
	if err != nil {
		return nil, usagef("--http is %q; it takes host:port", a.HTTP)
	}
	for i := range a.Nodes {
		at := 0
		if first != 0 {
			at = first + i
		}
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(at)))
		if err != nil {
			for _, open := range listeners {
				err = errors.Join(err, open.Close())
			}
			return nil, usagef("the address of node %d: %w; give other ones with --http", i+1, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// writeDevFile makes the file appear whole.
func writeDevFile(path string, file devFile) error {
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (a *app) printDev(file devFile) {
	w := a.out
	fmt.Fprintf(w, "viewkeeper is ready. Catalog %s, data in %s.\n\n", file.Catalog, a.Dir)
	for _, n := range file.Nodes {
		fmt.Fprintf(w, "  %-8s http://%s\n", n.Node, n.HTTP)
	}
	fmt.Fprintf(w, "  %-8s %s\n\n", "kafka", file.Kafka)
	server := ""
	if first := "http://" + file.Nodes[0].HTTP; first != a.all.Lookup("server").DefValue {
		server = " --server " + first
	}
	last := " --server http://" + file.Nodes[len(file.Nodes)-1].HTTP
	fmt.Fprintf(w, `Try, in another terminal:

  viewkeeper sql -c 'CREATE VIEW hello AS SELECT 42 AS answer'%[1]s
  viewkeeper sql -c 'SELECT * FROM hello'%[2]s
  viewkeeper sql%[1]s
  curl -d 'DROP VIEW hello' http://%[3]s/v1/statements
  echo 'CREATE VIEW hello AS SELECT 42 AS answer' | kcat -P -b %[4]s -t viewkeeper.%[5]s-definitions -k hello

Ctrl-C stops it; the same command continues where it stopped.
`, server, last, file.Nodes[0].HTTP, file.Kafka, file.Catalog)
}
