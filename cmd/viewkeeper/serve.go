package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve --brokers B --catalog C",
		Short: "Run one process of a fleet: owner, node, or both",
		Long: `serve runs one process of a fleet on Kafka until it is told to stop (SIGTERM or
Ctrl-C). With the role owner it takes part in judging statements: one process of
all owners does, the others stand by. With the role node it follows the catalog and
answers HTTP.

It never creates topics ('viewkeeper topics create' does), and starts also while
Kafka is away: a node then serves its own copy of the table, if it has one, with its
age (--start-stale); /readyz says what it waits for. All processes of a catalog must
have the same base.`,
		Example: `  viewkeeper serve --brokers k1:9092,k2:9092 --catalog prod --base base.sql --lake /data
  viewkeeper serve --brokers k1:9092 --catalog prod --roles node --http :7410 --node-id reader-3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
	a.use(cmd.Flags(), append(roleSettings(), "brokers", "roles", "advertise", "data-dir", "node-id", "read-only", "start-stale", "purge-after", "strict-settings")...)
	return cmd
}

func (a *app) serve(ctx context.Context) error {
	settings, topics, err := a.kafkaSettings()
	if err != nil {
		return err
	}
	if len(a.Roles) == 0 {
		return usagef("--roles is empty; it takes owner, node, or both")
	}
	if a.ReadOnly && slices.Contains(a.Roles, "owner") {
		return usagef("an owner writes; --read-only is for --roles node")
	}
	log := a.logger()
	engines, err := a.engineConfig(log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", a.HTTP)
	if err != nil {
		return usagef("--http: %w", err)
	}
	advertise := a.advertised(listener.Addr().String())
	spec := ownerSpec{
		kafka: settings.KafkaSettings, catalog: topics.Catalog, id: orText(a.NodeID, advertise),
		engine: engines, metrics: newMetrics(), log: log,
	}
	stopped := ctx // ends when the process is told to stop; the group's also when a part fails
	group, ctx := errgroup.WithContext(ctx)
	if err := a.startRoles(ctx, group, listener, advertise, spec); err != nil {
		// What was started stops with the group's context.
		group.Go(func() error { return errors.Join(err, listener.Close()) })
	} else {
		log.Info("started", "catalog", topics.Catalog, "node", spec.id, "http", listener.Addr(), "roles", a.Roles)
	}
	if err := group.Wait(); err != nil && stopped.Err() == nil {
		return fmt.Errorf("the process can't go on: %w", err)
	}
	log.Info("stopped")
	return nil
}

// startRoles starts what --roles names in a group.
func (a *app) startRoles(ctx context.Context, group *errgroup.Group, listener net.Listener, advertise string, spec ownerSpec) error {
	isNode := slices.Contains(a.Roles, "node")
	var judging *owner
	if slices.Contains(a.Roles, "owner") {
		o, err := a.newOwner(ctx, spec)
		if err != nil {
			return err
		}
		judging = o
		group.Go(func() error { return o.run(ctx) })
		if !isNode {
			group.Go(func() error { return serveOwner(ctx, listener, o, spec) })
		}
	}
	if isNode {
		n, err := a.newNode(ctx, nodeSpec{ownerSpec: spec, listener: listener, advertise: advertise, dataDir: filepath.Join(a.DataDir, spec.catalog)})
		if err != nil {
			return err
		}
		group.Go(func() error { return n.run(ctx) })
		if judging != nil {
			group.Go(func() error { tellNode(ctx, judging.Processor, n.Node); return nil })
		}
	}
	return nil
}

// advertised is the address that others reach a listener at: the one given, else
// the one it listens at, with this host's name in place of all addresses.
func (a *app) advertised(listening string) string {
	if a.Advertise != "" {
		return a.Advertise
	}
	host, port, err := net.SplitHostPort(listening)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		if name, err := os.Hostname(); err == nil {
			return net.JoinHostPort(name, port)
		}
	}
	return listening
}
