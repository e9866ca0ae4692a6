package main

import (
	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
)

// engineCommand is what a keeper starts its engines with. It is never typed; main
// runs it before anything else when its keeper's mark is in the environment.
func (a *app) engineCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "engine planner|server",
		Short:  "The child process that runs SQL; a node starts its own",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1),
		RunE: func(*cobra.Command, []string) error {
			if !engine.IsChild() {
				return usagef("an engine is started by its node and can't be started by hand; 'viewkeeper dev' and 'viewkeeper serve' start what they need")
			}
			return reported(engine.Main())
		},
	}
}
