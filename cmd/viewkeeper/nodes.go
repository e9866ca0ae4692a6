package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
)

func (a *app) nodesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List every live node and the version that it has",
		Long: `nodes lists every live node of the catalog with its version and state, as the
nodes topic has them. Live is who said something in the last 10 seconds.`,
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
				state := "ready"
				if !n.Ready {
					state = "not ready: " + strings.Join(n.ReadyReasons, ", ")
				} else if len(n.Degraded) > 0 {
					state = "degraded: " + strings.Join(n.Degraded, ", ")
				}
				rows = append(rows, []string{n.Node, n.HTTP, n.Version.String(), fmt.Sprintf("%d/%d", n.Definitions-n.Broken, n.Definitions), n.Digest, state})
			}
			return a.printRows([]string{"node", "address", "version", "builds", "digest", "state"}, rows)
		},
	}
	a.use(cmd.Flags(), "server", "brokers", "catalog", "output", "timeout")
	return cmd
}

// liveNodes asks a node, or with --brokers the nodes topic, who is live.
func (a *app) liveNodes(ctx context.Context) ([]viewkeeper.Status, error) {
	if a.direct() {
		topics, err := a.openTopics()
		if err != nil {
			return nil, err
		}
		defer topics.Close()
		ctx, cancel := context.WithTimeout(ctx, a.Timeout)
		defer cancel()
		return topics.nodes(ctx)
	}
	var body struct {
		Nodes []viewkeeper.Status `json:"nodes"`
	}
	_, err := a.fetch(ctx, "/v1/nodes", nil, &body)
	return body.Nodes, err
}
