package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
)

func (a *app) nodesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List every live node and the version that it has",
		Long: `nodes lists every live node of the catalog as the nodes topic has them: the
version that it has and how many it is behind the highest (lag), how many of the
definitions build there, what is wrong with it, and since when it is as it is. Live
is who said something in the last 10 seconds.`,
		Example: `  viewkeeper nodes
  viewkeeper nodes --brokers kafka:9092 --catalog prod`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			nodes, err := a.liveNodes(cmd.Context())
			if err != nil {
				return err
			}
			if a.form() == formJSON {
				return a.printJSON(map[string]any{"nodes": nodes})
			}
			rows := [][]string{}
			for _, n := range nodes {
				rows = append(rows, []string{n.Node, n.HTTP, n.Version.String(), n.Lag.String(),
					fmt.Sprintf("%d/%d", n.Definitions-n.Broken, n.Definitions), n.Digest, stateOf(n), ago(n.Since, n.At)})
			}
			return a.printRows([]string{"node", "address", "version", "lag", "builds", "digest", "state", "since"}, rows)
		},
	}
	a.use(cmd.Flags(), "server", "brokers", "catalog", "output", "timeout")
	return cmd
}

// stateOf says in a few words what is wrong with a node, the worst first.
func stateOf(n viewkeeper.NodeStatus) string {
	var parts []string
	if !n.Ready {
		parts = append(parts, "not ready: "+strings.Join(n.ReadyReasons, ", "))
	}
	for _, p := range []struct {
		is   bool
		text string
	}{
		{n.Lagging, "lags"}, {n.StaleFor > 0, fmt.Sprintf("stale for %.0f s", n.StaleFor)},
		{n.DigestDiffers, "digest differs"}, {n.BaseDiffers, "base differs"}, {n.Broken > 0, fmt.Sprintf("%d broken", n.Broken)},
		{len(n.Degraded) > 0, "degraded: " + strings.Join(n.Degraded, ", ")},
	} {
		if p.is {
			parts = append(parts, p.text)
		}
	}
	if parts == nil {
		return "ready"
	}
	return strings.Join(parts, "; ")
}

// ago is how long before now something was, in a few characters; "" when it is not
// known.
func ago(since, now time.Time) string {
	if since.IsZero() || now.Before(since) {
		return ""
	}
	d := now.Sub(since).Round(time.Second)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

// liveNodes asks a node, or with --brokers the nodes topic, who is live.
func (a *app) liveNodes(ctx context.Context) ([]viewkeeper.NodeStatus, error) {
	if a.direct() {
		topics, err := a.openTopics()
		if err != nil {
			return nil, err
		}
		defer topics.Close()
		ctx, cancel := context.WithTimeout(ctx, a.Timeout)
		defer cancel()
		nodes, err := topics.nodes(ctx)
		return viewkeeper.CompareNodes(nodes, viewkeeper.FleetView{}), err
	}
	var body struct {
		Nodes []viewkeeper.NodeStatus `json:"nodes"`
	}
	_, err := a.fetch(ctx, "/v1/nodes", nil, &body)
	return body.Nodes, err
}
