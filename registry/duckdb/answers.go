package duckdb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
)

// answers is what the answers of a planner follow from beside the base and the files:
// see [registry.Engine]. The gate is a part of the program, so another build of it
// answers for itself. A build is known by its file: its version alone is the same for
// all that are made of a tree that was changed.
func answers(g *gate) string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Stat(path)
	if err != nil {
		return ""
	}
	h := sha256.New()
	if build, ok := debug.ReadBuildInfo(); ok {
		fmt.Fprintln(h, build)
	}
	fmt.Fprintln(h, file.Size(), file.ModTime().UnixNano())
	fmt.Fprintf(h, "%+v\n%q\n", g.limits, g.lake.dirs)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
