package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print every setting with its value and where it came from",
		Long: `config prints every setting of every command: its name, which is also its key in
the configuration file, its value now, and where that came from: a flag, the
environment, the file with its line, or the default. Nothing is contacted.`,
		Example: `  viewkeeper config
  VIEWKEEPER_HTTP=:8080 viewkeeper config --config viewkeeper.yaml --output json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rows := [][]string{}
			for _, s := range a.list() {
				rows = append(rows, []string{s.Name, s.Value, s.Source, envName(s.Name)})
			}
			return a.printRows([]string{"name", "value", "source", "environment"}, rows)
		},
	}
	// The command takes every flag, so that what another command would see can be
	// asked here.
	a.all.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" {
			a.use(cmd.Flags(), f.Name)
		}
	})
	return cmd
}

// setting is one setting with its value as text.
type setting struct{ Name, Value, Source string }

func (s *Settings) list() []setting {
	var list []setting
	s.all.VisitAll(func(f *pflag.Flag) {
		value := f.Value.String()
		if l, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(l.GetSlice(), ",")
		}
		list = append(list, setting{Name: f.Name, Value: value, Source: s.source(f.Name)})
	})
	return list
}
