package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// TestStartWithoutKafka: a node that is killed, and starts again while Kafka is away
// from it, serves its copy with its age; what was decided meanwhile it has as soon as
// Kafka is back, without reading the rest again.
func TestStartWithoutKafka(t *testing.T) {
	f := fleet.New(t)
	f.Serve("owner", "owner")
	other := f.Serve("n2", "node")
	proxy, err := kafkaproxy.Start(t.Context(), strings.Split(f.Tools.Brokers, ","))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	f.Brokers = proxy.Brokers()
	n := f.Serve("n1", "node")
	var last viewkeeper.Decision
	for i := range 20 {
		last = other.Statement(fmt.Sprintf("CREATE VIEW v%d AS SELECT a + %d AS a FROM t", i, i))
	}
	n.WantRows("SELECT count(*) FROM vk.definitions", last.Version, "20")
	fleet.Eventually(t, "the copy of version "+last.Version.String(), func() error {
		// The rows come a moment after their commit row, and the copy after them.
		if next, end := metric(t, n, "viewkeeper_table_copy_next_offset", ""), 2*20; int(next) <= end {
			return fmt.Errorf("it goes up to %v", next)
		}
		return nil
	})

	n.Kill()
	proxy.Cut()
	for range 2 { // and once more, of a copy that was stale already
		n = f.Serve("n1", "node")
		n.WantRows("SELECT a FROM v19 ORDER BY a", last.Version, "20", "21")
		s := n.Status()
		if !slices.Contains(s.Degraded, viewkeeper.ReasonKafkaAway) || s.StaleFor <= 0 || s.Version < last.Version || !s.Ready {
			t.Errorf("%+v", s)
		}
		if text := f.Viewkeeper("status", "--server", n.HTTP, "--output", "json"); !strings.Contains(text, viewkeeper.ReasonKafkaAway) {
			t.Errorf("viewkeeper status says %s", text)
		}
		if status := n.Call(http.MethodPost, "/v1/statements", map[string]any{"sql": "CREATE VIEW w AS SELECT 1 AS one"}, nil); status != http.StatusServiceUnavailable {
			t.Errorf("a statement is answered with %d", status)
		}
		n.Kill()
	}
	var d viewkeeper.Decision
	if status := other.Call(http.MethodPost, "/v1/statements?wait=node&timeout=30s", map[string]any{"sql": "CREATE VIEW w AS SELECT a FROM v19"}, &d); status != http.StatusOK {
		t.Fatalf("%d %+v", status, d)
	}
	n = f.Serve("n1", "node")
	n.WantRows("SELECT count(*) FROM v19", last.Version, "2")
	proxy.Heal()
	n.WantRows("SELECT a FROM w ORDER BY a", d.Version, "20", "21")
	fleet.Eventually(t, "n1 is current", func() error {
		if s := n.Status(); s.StaleFor > 0 || len(s.Degraded) > 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	if rows := metric(t, n, "viewkeeper_table_records_total", `type="row"`); rows != 1 {
		t.Errorf("%v rows were read, and one is new", rows)
	}
	fleet.SameDigests(t, n, other)
	n.Stop()

	// Who says so waits for Kafka.
	proxy.Cut()
	n = f.Launch("n1", "node", "--start-stale=false")
	n.WaitStatus("/readyz", http.StatusServiceUnavailable)
	if _, err := n.Query("SELECT a FROM w", 0); err == nil {
		t.Error("the copy is served")
	}
	proxy.Heal()
	n.WaitStatus("/readyz", http.StatusOK)
	n.WantRows("SELECT a FROM w ORDER BY a", d.Version, "20", "21")
	n.Stop()

	// A damaged copy is read anew.
	files, err := filepath.Glob(filepath.Join(f.Dir, "n1", f.Catalog, "table", "*.ldb"))
	if err != nil || len(files) == 0 {
		files, err = filepath.Glob(filepath.Join(f.Dir, "n1", f.Catalog, "table", "*.log"))
	}
	if err != nil || len(files) == 0 {
		t.Fatal("the copy has no files:", err)
	}
	for _, file := range files {
		if err := os.Truncate(file, 10); err != nil {
			t.Fatal(err)
		}
	}
	n = f.Serve("n1", "node")
	n.WantRows("SELECT a FROM w ORDER BY a", d.Version, "20", "21")
	if log, err := os.ReadFile(n.Log); err != nil || !strings.Contains(string(log), "it is thrown away, and the table is read anew from Kafka") {
		t.Error("the log does not say that the copy was thrown away:", err)
	}
	if got := metric(t, n, "viewkeeper_table_copy_discarded_total", ""); got != 1 {
		t.Errorf("%v copies were thrown away", got)
	}
}

// metric sums what /metrics says of a name, over the labels that are asked for.
func metric(t *testing.T, p *fleet.Proc, name, label string) float64 {
	t.Helper()
	resp, err := http.Get(p.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		var value float64
		at := strings.LastIndexByte(line, ' ')
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, label) {
			continue
		}
		if _, err := fmt.Sscan(line[at:], &value); err != nil {
			t.Fatal(line, err)
		}
		sum += value
	}
	return sum
}
