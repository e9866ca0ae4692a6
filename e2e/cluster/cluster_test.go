// Package cluster holds the end-to-end tests that need three brokers: replication
// 3, min.insync.replicas 2, leaders that move, brokers that die and come back.
// `make e2e` starts them.
package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// TestBrokerDies: with one broker of three gone, whichever it is, statements go on, and nothing that was said is lost.
func TestBrokerDies(t *testing.T) {
	f := fleet.New(t)
	if n := len(strings.Split(f.Brokers, ",")); n != 3 {
		t.Fatalf("%d brokers; scripts/with-kafka 3 starts three", n)
	}
	f.Viewkeeper("topics", "check", "--brokers", f.Brokers, "--catalog", f.Catalog)
	f.Serve("a", "owner,node")
	f.Serve("b", "owner,node")
	last := f.Procs["b"].Statement("CREATE VIEW v0 AS SELECT a FROM t")
	n := 0
	change := func() {
		t.Helper()
		n++
		// One id for all tries: an answer that got lost on the way is asked for again, not decided again.
		id := fmt.Sprintf("%s-change-%d", f.Catalog, n)
		fleet.Eventually(t, "a decision", func() error {
			var d viewkeeper.Decision
			status, err := f.Procs["b"].Try(http.MethodPost, "/v1/statements?wait=node&timeout=20s",
				map[string]any{"id": id, "sql": fmt.Sprintf("CREATE VIEW v%d AS SELECT a + 1 AS a FROM v%d", n, n-1)}, &d)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d %s %s", status, d.Code, d.Message)
			}
			last = d
			return err
		})
		if last.Verdict != viewkeeper.Accepted {
			t.Fatalf("change %d: %+v", n, last)
		}
	}
	for _, broker := range []string{"1", "2", "3"} {
		f.Tools.SignalBroker(broker, "KILL")
		change()
		f.Tools.StartBroker(broker)
		change()
	}
	for _, node := range []string{"a", "b"} {
		f.Procs[node].WantRows(fmt.Sprintf("SELECT max(a) FROM v%d", n), last.Version, fmt.Sprint(2+n))
	}
	fresh := f.Serve("fresh", "node")
	fresh.WantRows("SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last.Version, fmt.Sprint(n+1))
	fleet.SameDigests(t, f.Procs["a"], f.Procs["b"], fresh)
}
