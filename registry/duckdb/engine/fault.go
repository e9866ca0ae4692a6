package engine

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// faultParams asks a child to fail, for tests: a child that was not started with
// Config.faults refuses.
type faultParams struct {
	// Kind is "crash" (a signal), "exit", "hang" (for ever, cancelled or not),
	// "balloon" (memory without end).
	Kind string `json:"kind"`
}

// faultIn fails as a definition asks for with a comment, /* fault: crash */, when it is
// to be made a view.
func (c *child) faultIn(query string) {
	if _, kind, ok := strings.Cut(query, "/* fault: "); ok && c.faults {
		kind, _, _ = strings.Cut(kind, " */")
		_ = c.fault(faultParams{Kind: kind})
	}
}

func (c *child) fault(p faultParams) error {
	if !c.faults {
		return errors.New("engine: faults are for tests")
	}
	switch p.Kind {
	case "crash":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {}
	case "exit":
		fmt.Fprintln(os.Stderr, "the fault that was asked for")
		os.Exit(3)
	case "hang":
		select {}
	case "balloon":
		var kept [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			kept = append(kept, b)
			_ = kept
		}
	}
	return fmt.Errorf("engine: no fault %q", p.Kind)
}
