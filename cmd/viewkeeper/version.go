package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Long:    "version prints the version of this binary, the commit it was built from and the Go release that built it.",
		Example: "  viewkeeper version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version, commit := buildVersion()
			return a.printRows([]string{"version", "commit", "go", "platform"},
				[][]string{{version, commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}})
		},
	}
	a.use(cmd.Flags(), "output")
	return cmd
}

// buildVersion asks the binary itself, so that no build needs a flag for it.
func buildVersion() (version, commit string) {
	version, commit = "(devel)", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, commit
	}
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+changes"
			}
		}
	}
	return version, commit + dirty
}
