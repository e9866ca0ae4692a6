package seen

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// TestFromAnyNode: a node with another base, on which a definition does not build, is seen
// from the node beside it: in the list, in SQL, as numbers, by the command line with and
// without a node. Its engine is killed, and that is counted.
func TestFromAnyNode(t *testing.T) {
	t.Parallel()
	f := fleet.New(t)
	owner := f.Serve("owner", "owner")
	n1 := f.Serve("n1", "node")
	other := filepath.Join(f.Dir, "other.sql")
	f.Write(other, "CREATE TABLE t (b VARCHAR)")
	n2 := f.Serve("n2", "node", "--base", other)
	d := n1.Statement("CREATE VIEW reads_a AS SELECT a FROM t")

	shows(t, n2, "/readyz", http.StatusOK, `"ready":true`, viewkeeper.ReasonBaseDiffers, viewkeeper.ReasonBroken, "give all the same base")
	shows(t, n1, "/v1/nodes", http.StatusOK, `"base_differs":true`, `"broken":1`, `"broken_definitions":["main.reads_a"]`)
	gauge(t, n1, "viewkeeper_fleet_base_mismatch", nil, 1)
	gauge(t, n1, "viewkeeper_fleet_broken", nil, 1)
	gauge(t, n1, "viewkeeper_fleet_nodes", nil, 2)
	gauge(t, n1, "viewkeeper_fleet_lagging", nil, 0)
	gauge(t, n1, "viewkeeper_degraded", []string{`reason="BASE_DIFFERS"`, `of="node"`}, 0)
	n1.WantRows("SELECT node, base_differs, broken, lag, digest_differs, lagging FROM vk.nodes ORDER BY node", d.Version,
		"n1false 0 0 false false", "n2true 1 0 false false")
	for _, door := range [][]string{{"--server", n1.HTTP}, {"--brokers", f.Brokers, "--catalog", f.Catalog}} {
		fleet.Eventually(t, "viewkeeper nodes shows n2's trouble", func() error {
			out := f.Viewkeeper(append([]string{"nodes", "--output", "table"}, door...)...)
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "n2 ") && strings.Contains(line, "1 broken") && strings.Contains(line, viewkeeper.ReasonBaseDiffers) {
					return nil
				}
			}
			return fmt.Errorf("%s", out)
		})
	}
	logged(t, n2, `something is wrong.*reason=BASE_DIFFERS.*do="give all processes the same --base"`)
	if said := lines(t, n1, "reason=BASE_DIFFERS"); len(said) > 0 {
		t.Errorf("n1 says of itself what is n2's: %q", said)
	}

	// An owner alone answers as well, and its numbers say what it is.
	shows(t, owner, "/v1/status", http.StatusOK, `"state":"owner"`, `"ready":true`, `"degraded":[]`, `"node":"owner"`)
	gauge(t, owner, "viewkeeper_processor_state", []string{`state="owner"`}, 1)
	gauge(t, owner, "viewkeeper_processor_state", []string{`state="blocked"`}, 0)
	if out := f.Viewkeeper("status", "--server", owner.HTTP, "--output", "table"); !strings.Contains(out, "owner: owner") {
		t.Errorf("%s", out)
	}
	killChildren(t, n1)
	gauge(t, n1, "viewkeeper_engine_losses_total", []string{`engine="server"`}, 1)
	logged(t, n1, "the engine was lost; another is being started")
	fleet.Eventually(t, "queries are answered again", func() error {
		_, err := n1.Query("SELECT a FROM reads_a", d.Version)
		return err
	})
}

// killChildren kills every engine of a process. Each of its threads may have started one.
func killChildren(t *testing.T, p *fleet.Proc) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // that thread has ended
		}
		for _, child := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	if killed < 2 {
		t.Fatalf("%d engines were found", killed)
	}
}
