package main

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
)

func (a *app) waitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wait VERSION",
		Short: "Wait until a node, or every live node, has a catalog version",
		Long: `wait returns when the node asked has a catalog version, or with --fleet when
every live node has it. It exits with 4 when that took longer than --timeout; asking
again goes on waiting.`,
		Example: `  viewkeeper wait 1042
  viewkeeper wait 1042 --fleet --timeout 2m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := viewkeeper.ParseVersion(args[0])
			if err != nil {
				return usagef("%w", err)
			}
			return a.wait(cmd.Context(), v)
		},
	}
	a.use(cmd.Flags(), "server", "brokers", "catalog", "fleet", "timeout")
	return cmd
}

func (a *app) wait(ctx context.Context, v viewkeeper.Version) error {
	shown := a.startProgress("waiting for version %s", v)
	defer shown.stop()
	if a.direct() {
		return a.waitByTopics(ctx, v)
	}
	node, err := a.client()
	if err != nil {
		return err
	}
	path := "/v1/status"
	if a.Fleet {
		path = "/v1/nodes"
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timeout+5*time.Second)
	defer cancel()
	var ignored any
	_, err = node.get(ctx, path, url.Values{"min_version": {v.String()}, "timeout": {a.Timeout.String()}}, &ignored)
	return err
}

func (a *app) waitByTopics(ctx context.Context, v viewkeeper.Version) error {
	if !a.Fleet {
		return usagef("with --brokers only the whole fleet can be waited for; add --fleet, or name a node with --server")
	}
	topics, err := a.openTopics()
	if err != nil {
		return err
	}
	defer topics.Close()
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	_, missing, err := topics.waitFleet(ctx, v)
	if ctx.Err() != nil {
		return timeoutf("not every live node has version %s yet: %s", v, strings.Join(missing, ", "))
	}
	return err
}
