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

// What the linker writes (-X main.stampedVersion=...), empty in a build without it.
// Nothing else does.
var stampedVersion, stampedCommit string

// nextVersion is what a build without a tag is on the way to.
const nextVersion = "0.3.0-dev"

// buildVersion gives what the linker wrote, else what go build found out by itself.
func buildVersion() (version, commit string) {
	if stampedVersion != "" {
		return stampedVersion, stampedCommit
	}
	version, commit = nextVersion, "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, commit
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
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
