package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
)

func (a *app) describeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe NAME",
		Short:   "Show one definition: columns, what it reads, who reads it, its text",
		Long:    "describe shows one definition as a node has it: its columns, what its text reads, who reads it, why it is broken if it is, and its text.",
		Example: "  viewkeeper describe late",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.describe(cmd.Context(), args[0]) },
	}
	a.use(cmd.Flags(), "server", "catalog", "output", "timeout")
	return cmd
}

func (a *app) describe(ctx context.Context, name string) error {
	var d definitionJSON
	raw, err := a.fetch(ctx, "/v1/definitions/"+url.PathEscape(name), nil, &d)
	if err != nil {
		return err
	}
	if a.form() == formJSON {
		return a.printRaw(raw)
	}
	fmt.Fprintf(a.out, "%s %s, version %s, %s", d.Kind.Noun(), d.Name, d.Version, d.State)
	switch {
	case d.HistoryLength == 1:
		fmt.Fprint(a.out, ", 1 decision")
	case d.HistoryLength > 1:
		fmt.Fprintf(a.out, ", %d decisions", d.HistoryLength)
	}
	fmt.Fprintln(a.out)
	if d.Comment != nil {
		fmt.Fprintf(a.out, "%s\n", *d.Comment)
	}
	if f := d.Failure; f != nil {
		fmt.Fprintf(a.out, "broken at %s: %s\n", f.Stage, f.Reason)
	}
	fmt.Fprintln(a.out)
	if len(d.Columns) > 0 {
		t := newTable(a.out, []string{"column", "type"}, nil)
		for _, c := range d.Columns {
			t.add([]string{c.Name, c.Type})
		}
		if err := t.close(); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	for _, r := range d.Reads {
		fmt.Fprintf(a.out, "reads %s %s\n", r.Kind, r.Name)
	}
	for _, n := range d.ReadBy {
		fmt.Fprintf(a.out, "read by %s\n", n)
	}
	_, err = fmt.Fprintf(a.out, "\n%s\n", d.SQL)
	return err
}
