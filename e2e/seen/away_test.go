// Package seen shows on real Apache Kafka that what goes wrong is seen by people: in
// /livez, /readyz and /v1/status, in the metrics, in other nodes' lists and in the log,
// where a line for each thing is enough.
package seen

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// get gives the body of an answer with its status.
func get(p *fleet.Proc, path string) (int, string, error) {
	resp, err := http.Get(p.HTTP + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// shows waits until an answer has a status and all of the parts.
func shows(t *testing.T, p *fleet.Proc, path string, status int, parts ...string) {
	t.Helper()
	fleet.Eventually(t, fmt.Sprintf("%s %s is %d with %q", p.Name, path, status, parts), func() error {
		got, body, err := get(p, path)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if !strings.Contains(body, part) {
				return fmt.Errorf("%d, without %s:\n%s", got, part, body)
			}
		}
		if got != status {
			return fmt.Errorf("%d:\n%s", got, body)
		}
		return nil
	})
}

// gauge waits until a metric with these labels has a value.
func gauge(t *testing.T, p *fleet.Proc, name string, labels []string, value float64) {
	t.Helper()
	fleet.Eventually(t, fmt.Sprintf("%s %s%q is %g", p.Name, name, labels, value), func() error {
		_, body, err := get(p, "/metrics")
		if err != nil {
			return err
		}
	lines:
		for line := range strings.Lines(body) {
			if !strings.HasPrefix(line, name+"{") {
				continue
			}
			for _, l := range labels {
				if !strings.Contains(line, l) {
					continue lines
				}
			}
			if strings.HasSuffix(line, fmt.Sprintf(" %g\n", value)) {
				return nil
			}
			return fmt.Errorf("%s", line)
		}
		return fmt.Errorf("there is no such series")
	})
}

// lines gives the lines of a process's log that match.
func lines(t *testing.T, p *fleet.Proc, pattern string) []string {
	t.Helper()
	text, err := os.ReadFile(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?m)^.*"+pattern+".*$").FindAllString(string(text), -1)
}

// logged waits until there is a line.
func logged(t *testing.T, p *fleet.Proc, pattern string) {
	t.Helper()
	fleet.Eventually(t, p.Name+"'s log has "+pattern, func() error {
		if len(lines(t, p, pattern)) == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
}

// TestBrokersAway: the brokers are away for longer than --max-stale, then silent, then come
// and go. Nobody has a reason to restart a process: it is live all the time, says what is
// wrong, is not ready by its policy, answers queries, and goes on by itself. The log has a
// line when it begins and one when it has ended, and not one for each attempt.
func TestBrokersAway(t *testing.T) {
	t.Parallel()
	proxy, err := kafkaproxy.Start(t.Context(), strings.Split(fleet.Find(t).Brokers, ","))
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	f := fleet.New(t)
	f.Brokers = proxy.Brokers()
	owner := f.Serve("owner", "owner")
	node := f.Serve("n1", "node", "--max-stale", "4s")
	all := []*fleet.Proc{owner, node}
	node.Statement("CREATE VIEW before AS SELECT a FROM t")
	pids := []int{owner.PID(), node.PID()}
	live := func() {
		t.Helper()
		for i, p := range all {
			if status, body, err := get(p, "/livez"); err != nil || status != http.StatusOK || p.PID() != pids[i] {
				t.Errorf("%s is not live: %d %s %v", p.Name, status, body, err)
			}
		}
	}

	proxy.Cut()
	shows(t, node, "/v1/status", http.StatusOK, viewkeeper.ReasonKafkaAway, `"stale_for"`)
	live()
	shows(t, node, "/readyz", http.StatusServiceUnavailable, `"reasons":["STALE"]`, `"degraded":["KAFKA_AWAY"]`, "the brokers ", "becomes ready again by itself")
	shows(t, owner, "/readyz", http.StatusServiceUnavailable, `"reasons":["KAFKA_AWAY"]`)
	shows(t, owner, "/v1/status", http.StatusOK, `"ready":false`, viewkeeper.ReasonKafkaAway)
	gauge(t, node, "viewkeeper_degraded", []string{`reason="KAFKA_AWAY"`, `of="node"`}, 1)
	gauge(t, node, "viewkeeper_not_ready", []string{`reason="STALE"`}, 1)
	gauge(t, node, "viewkeeper_ready", nil, 0)
	gauge(t, owner, "viewkeeper_processor_reason", []string{`reason="KAFKA_AWAY"`}, 1)
	node.WantRows("SELECT a FROM before", 0, "1", "2")
	live()

	// Connections that stay open and say nothing, then ones that are cut again and again.
	proxy.Heal()
	shows(t, node, "/readyz", http.StatusOK)
	proxy.Silence()
	shows(t, node, "/readyz", http.StatusServiceUnavailable, viewkeeper.ReasonKafkaAway)
	live()
	proxy.Heal()
	for range 5 {
		proxy.Cut()
		shows(t, node, "/v1/status", http.StatusOK, viewkeeper.ReasonKafkaAway)
		live()
		proxy.Heal()
		fleet.Eventually(t, "current again", func() error {
			if st := node.Status(); len(st.Degraded) > 0 && st.StaleFor > 0 {
				return fmt.Errorf("%v", st.Degraded)
			}
			return nil
		})
	}
	shows(t, node, "/readyz", http.StatusOK, `"degraded":[]`)
	shows(t, owner, "/readyz", http.StatusOK, `"degraded":[]`)
	// The owner may be taking over once more; the same id is decided once.
	fleet.Eventually(t, "a statement is decided", func() error {
		var answer viewkeeper.Decision
		status, err := node.Try(http.MethodPost, "/v1/statements", map[string]string{"sql": "CREATE VIEW after AS SELECT a FROM before", "id": "after"}, &answer)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, answer.Message)
		}
		return err
	})
	live()

	for _, p := range all {
		logged(t, p, `well again.*reason=KAFKA_AWAY`)
		said := lines(t, p, `level=(WARN|ERROR)`)
		// Away, silent and flapping are one trouble or a few, as long as the pauses
		// between were; what comes of it (stale, no owner) is said beside it.
		if n := len(said); n == 0 || n > 15 {
			t.Errorf("%s has %d lines of warning:\n%s", p.Name, n, strings.Join(said, "\n"))
		}
		if n := len(lines(t, p, `something is wrong.*reason=KAFKA_AWAY.*do="look at the brokers`)); n == 0 || n > 4 {
			t.Errorf("%s said %d times that the brokers are away:\n%s", p.Name, n, strings.Join(said, "\n"))
		}
	}
}
