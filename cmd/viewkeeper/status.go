package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
)

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what a node says of itself",
		Long: `status shows what a node says of itself: version, readiness with the reasons,
what is wrong and what to do, the owner and the engine. It exits with 1 when the node
is not ready. A process that is an owner only answers as well.`,
		Example: "  viewkeeper status --server http://node-1:7410",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var st struct {
				viewkeeper.Status
				State string `json:"state"` // of a process that is an owner only
			}
			raw, err := a.fetch(cmd.Context(), "/v1/status", nil, &st)
			if err != nil {
				return err
			}
			if a.form() == formJSON {
				err = a.printRaw(raw)
			} else {
				err = a.printStatus(st.Status, st.State)
			}
			if err == nil && !st.Ready {
				return reported(exitRefused)
			}
			return err
		},
	}
	a.use(cmd.Flags(), "server", "catalog", "output", "timeout")
	return cmd
}

func (a *app) printStatus(st viewkeeper.Status, owner string) error {
	ready := "ready"
	if !st.Ready {
		ready = "not ready: " + strings.Join(st.ReadyReasons, ", ")
	}
	rows := [][2]string{{"catalog", st.Catalog}, {"address", st.HTTP}, {"version", st.Version.String()}, {"state", ready},
		{"degraded", strings.Join(st.Degraded, ", ")}, {"since", ago(st.Since, st.At)}, {"stale for", fmt.Sprintf("%.1f s", st.StaleFor)},
		{"definitions", fmt.Sprintf("%d, %d broken here", st.Definitions, st.Broken)},
		{"owner", fmt.Sprintf("%s, epoch %s", st.Owner, st.Epoch)}, {"engine", st.Engine},
		{"digest", st.Digest}, {"build digest", st.BuildDigest}, {"base digest", st.BaseDigest}, {"view state", st.ViewState}}
	if owner != "" {
		rows = [][2]string{{"catalog", st.Catalog}, {"role", "owner: " + owner}, {"version", st.Version.String()}, {"epoch", st.Epoch.String()},
			{"state", ready}, {"degraded", strings.Join(st.Degraded, ", ")}, {"since", ago(st.Since, st.At)}}
	}
	t := newTable(a.out, []string{"node", st.Node}, nil)
	for _, row := range rows {
		t.add(row[:])
	}
	if err := t.close(); err != nil {
		return err
	}
	for _, reason := range slices.Concat(st.ReadyReasons, st.Degraded) {
		if d := st.Details[reason]; d != "" {
			fmt.Fprintf(a.out, "%s: %s\n", reason, d)
		}
	}
	return nil
}
