package main

import (
	"github.com/spf13/cobra"
)

func (a *app) failuresCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "failures",
		Short: "List the definitions that do not build on a node, and why",
		Long: `failures lists the definitions that do not build on the node asked: the stage that
they failed at (parse, build, validate), the reason, and the definition to blame.
It exits with 1 when there are any. Another node may differ: a file missing there,
another base.`,
		Example: "  viewkeeper failures",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var body struct {
				Failures []failureJSON `json:"failures"`
			}
			raw, err := a.fetch(cmd.Context(), "/v1/failures", nil, &body)
			if err != nil {
				return err
			}
			if a.form() == formJSON {
				err = a.printRaw(raw)
			} else {
				rows := [][]string{}
				for _, f := range body.Failures {
					root := ""
					if f.RootCause != nil {
						root = f.RootCause.String()
					}
					rows = append(rows, []string{f.Name.String(), f.Stage, root, f.Since.String(), f.Reason})
				}
				err = a.printRows([]string{"name", "stage", "because of", "since", "reason"}, rows)
			}
			if err == nil && len(body.Failures) > 0 {
				return reported(exitRefused)
			}
			return err
		},
	}
	a.use(cmd.Flags(), "server", "catalog", "output", "timeout")
	return cmd
}
