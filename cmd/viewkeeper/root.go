package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// stdio is the process's standard streams.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// app is what the subcommands share: the streams and the settings.
type app struct {
	stdio
	Settings
}

// run executes one command line and gives its exit status.
func run(ctx context.Context, args []string, std stdio) int {
	a := &app{stdio: std}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	var f *failure
	if !errors.As(err, &f) || !f.quiet {
		fmt.Fprintf(std.err, "viewkeeper: %v\n", err)
	}
	return exitCode(err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "viewkeeper",
		Short: "A catalog of SQL views, kept on every node of a fleet, with Kafka as its log",
		Long: `viewkeeper keeps one catalog of SQL view definitions, with Kafka as its log, on
every node of a fleet. Statements are judged with the real planner before they
count, and nothing that built before can be broken by a change.

Every flag has an environment variable (VIEWKEEPER_HTTP for --http) and a key in
the YAML file given by --config. A flag beats the environment, which beats the
file, which beats the default; 'viewkeeper config' prints them all.

Exit status: 0 done (accepted, unchanged), 1 refused or a check found something,
2 wrong usage, 3 nobody reachable, 4 timed out, or decided but not everywhere yet.`,
		Example: `  viewkeeper dev                                    a broker, an owner and two nodes, here
  viewkeeper sql -c 'CREATE VIEW one AS SELECT 1 AS n'
  viewkeeper sql -c 'SELECT n FROM one'
  viewkeeper sql                                    a prompt`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.NoArgs,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w\n'%s --help' lists the flags", err, cmd.CommandPath())
	})
	a.use(root.PersistentFlags(), "config")
	root.AddCommand(
		a.devCommand(), a.serveCommand(),
		a.sqlCommand(), a.checkCommand(),
		a.viewsCommand(), a.describeCommand(), a.historyCommand(), a.failuresCommand(),
		a.nodesCommand(), a.statusCommand(), a.decisionCommand(), a.waitCommand(),
		a.topicsCommand(), a.exportCommand(), a.restoreCommand(),
		a.configCommand(), a.versionCommand(), a.completionCommand(),
		a.engineCommand(),
	)
	a.prepare(root)
	return root
}

// prepare makes every command read its settings before it runs, and words what
// cobra finds wrong with a command line as wrong usage.
func (a *app) prepare(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.prepare(sub)
	}
	if cmd.Args != nil {
		cmd.Args = usageArgs(cmd.Args)
	}
	if runE := cmd.RunE; runE != nil && !cmd.Hidden {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := a.resolve(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			for _, warning := range a.strangers(os.Environ()) {
				if cmd.Name() == "serve" {
					a.logger().Warn("an unknown setting", "detail", warning)
				} else {
					fmt.Fprintf(a.err, "viewkeeper: %s\n", warning)
				}
			}
			return runE(cmd, args)
		}
	}
}

func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		var f *failure
		if err == nil || errors.As(err, &f) {
			return err
		}
		return usagef("%w\n'%s --help' says how it is used", err, cmd.CommandPath())
	}
}
