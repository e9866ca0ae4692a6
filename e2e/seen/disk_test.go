//go:build linux

package seen

import (
	"fmt"
	"net/http"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// TestDiskFull: what a node writes to its data directory fails from one moment on, as on
// a full disk. Statements and queries go on, the node says what it can't keep, and keeps
// it again when there is room, with nothing missing.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	f := fleet.New(t)
	f.Serve("owner", "owner")
	node := f.Serve("n1", "node")
	d := node.Statement("CREATE VIEW v0 AS SELECT a FROM t")
	limit(t, node, 8<<10)
	i := 0
	fleet.Eventually(t, "the disk is full", func() error {
		i++
		d = node.Statement(fmt.Sprintf("CREATE OR REPLACE VIEW v0 AS SELECT a + %d AS a FROM t", i))
		if st := node.Status(); st.Details[viewkeeper.ReasonDataDir] == "" {
			return fmt.Errorf("%v after %d statements", st.Degraded, i)
		}
		return nil
	})
	shows(t, node, "/readyz", http.StatusOK, `"ready":true`, viewkeeper.ReasonDataDir, "the history index can't go on", "make room in the data directory")
	shows(t, node, "/livez", http.StatusOK)
	gauge(t, node, "viewkeeper_degraded", []string{`reason="DATA_DIR_FAILED"`, `of="node"`}, 1)
	node.WantRows("SELECT a FROM v0", d.Version, fmt.Sprint(1+i), fmt.Sprint(2+i))
	d = node.Statement("CREATE VIEW while_full AS SELECT 1 AS n")

	limit(t, node, unix.RLIM_INFINITY)
	fleet.Eventually(t, "the node is well again", func() error {
		if st := node.Status(); len(st.Degraded) > 0 {
			return fmt.Errorf("%v", st.Details)
		}
		return nil
	})
	if all := node.Decisions(d.Version); len(all) != int(d.Version) {
		t.Errorf("the history has %d of %s decisions", len(all), d.Version)
	}
	logged(t, node, `something is wrong.*reason=DATA_DIR_FAILED`)
	logged(t, node, `well again.*reason=DATA_DIR_FAILED`)
}

// limit bounds the files that a process may write, in bytes: writes beyond it fail.
func limit(t *testing.T, p *fleet.Proc, bytes uint64) {
	t.Helper()
	if err := unix.Prlimit(p.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
}
