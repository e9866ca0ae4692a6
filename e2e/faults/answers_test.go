package faults

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// answer is what a node says of a statement, whatever it says.
type answer struct {
	viewkeeper.Decision
	Title, Detail string
	// StatementID is Decision's; a problem has it too.
	ID string `json:"statement_id"`
}

func post(n *fleet.Proc, timeout, id, sql string) (int, answer, error) {
	var a answer
	status, err := n.Try(http.MethodPost, "/v1/statements?wait=node&timeout="+timeout, map[string]any{"id": id, "sql": sql}, &a)
	return status, a, err
}

// TestAnswersThatNeverCame is C34, and C39 on the side of who submits: what becomes of
// the write of a statement is chosen, and the answer says what is known of it, never
// more. The same statement with the same id is then decided once, and its answer is
// that of the first time.
func TestAnswersThatNeverCame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Serve("owner", "owner")
	proxy := w.proxy()
	n := w.behind(proxy, "n", "node")
	n.Statement("CREATE VIEW v AS SELECT a FROM t")
	for i, c := range []struct {
		name   string
		action kafkaproxy.Action
		status int
		code   string
		// written says that it is decided though the answer could not say so.
		written bool
	}{
		{"the acks are held back", kafkaproxy.HoldAnswer, http.StatusGatewayTimeout, "TIMEOUT", true},
		{"the ack is lost", kafkaproxy.LoseAnswer, http.StatusGatewayTimeout, "TIMEOUT", true},
		{"the request is held back", kafkaproxy.Hold, http.StatusGatewayTimeout, "TIMEOUT", false},
		{"the connection ends before it is sent on", kafkaproxy.Refuse, http.StatusGatewayTimeout, "TIMEOUT", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy.Intercept(func(r kafkaproxy.Request) kafkaproxy.Action {
				if r.Key == int16(kmsg.Produce) && slices.Contains(r.Topics(), w.Topic("definitions")) {
					return c.action
				}
				return kafkaproxy.Pass
			})
			id, sql := fmt.Sprint(w.Catalog, "-", i), fmt.Sprintf("CREATE VIEW x%d AS SELECT a FROM v", i)
			status, a, err := post(n, "1s", id, sql)
			if err != nil || status != c.status || string(a.Code) != c.code || a.ID != id || a.Verdict != "" {
				t.Errorf("status %d, %+v, %v", status, a, err)
			}
			if !strings.Contains(a.Detail, id) || !strings.Contains(a.Detail, "same id") {
				t.Errorf("the answer does not say what to do: %s", a.Detail)
			}
			// The command says it too, with the exit status for it.
			exit, out := w.command("sql", "--server", n.HTTP, "--timeout", "1s", "--id", id+"c", "-c", fmt.Sprintf("CREATE VIEW y%d AS SELECT a FROM v", i))
			if exit != 4 || !strings.Contains(out, id+"c") || strings.Contains(out, "accepted") {
				t.Errorf("exit %d: %s", exit, out)
			}
			var first viewkeeper.Decision
			if c.written {
				fleet.Eventually(t, "its decision, though nobody said that it was written", func() error {
					status, err := n.Try(http.MethodGet, "/v1/statements/"+id, nil, &first)
					if err == nil && status != http.StatusOK {
						err = fmt.Errorf("status %d", status)
					}
					return err
				})
			}
			proxy.Intercept(nil)
			proxy.Heal()
			again := w.eventually(n, id, sql)
			if again.Verdict != viewkeeper.Accepted || c.written && again.Version != first.Version {
				t.Errorf("first %d %s, again %d %s", first.Version, verdict(first), again.Version, verdict(again))
			}
			exit, out = w.command("sql", "--server", n.HTTP, "--id", id+"c", "-c", fmt.Sprintf("CREATE VIEW y%d AS SELECT a FROM v", i))
			if exit != 0 {
				t.Errorf("again: exit %d: %s", exit, out)
			}
		})
	}
	// One decision for each, however often it was sent.
	last := n.Statement("CREATE VIEW last AS SELECT a FROM v").Version
	byText := map[string]int{}
	for _, d := range n.Decisions(last) {
		byText[d.SQL]++
	}
	for sql, n := range byText {
		if n != 1 {
			t.Errorf("%d decisions on %s", n, sql)
		}
	}
	if len(byText) != 2+2*4 {
		t.Errorf("%d texts were decided", len(byText))
	}
}

// TestNothingIsSentWithoutBrokers is C39: a statement that certainly was not written is
// said not to be, and the same again is accepted once there are brokers.
func TestNothingIsSentWithoutBrokers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Serve("owner", "owner")
	proxy := w.proxy()
	n := w.behind(proxy, "n", "node")
	n.Statement("CREATE VIEW v AS SELECT a FROM t")
	proxy.Cut()
	id := w.Catalog + "-cut"
	// The first attempt may find its connection ended under it: not known. The next
	// ones find no broker at all.
	fleet.Eventually(t, "an answer that nothing was written", func() error {
		status, a, err := post(n, "5s", id, "CREATE VIEW x AS SELECT a FROM v")
		if err == nil && status == http.StatusOK {
			t.Fatalf("accepted without brokers: %+v", a)
		}
		if err == nil && (status != http.StatusServiceUnavailable || !strings.Contains(a.Detail, "nothing was written")) {
			err = fmt.Errorf("%d %+v", status, a)
		}
		return err
	})
	exit, out := w.command("sql", "--server", n.HTTP, "--timeout", "5s", "-c", "CREATE VIEW y AS SELECT a FROM v")
	if exit != 3 || !strings.Contains(out, "nothing was written") {
		t.Errorf("exit %d: %s", exit, out)
	}
	proxy.Heal()
	if d := w.eventually(n, id, "CREATE VIEW x AS SELECT a FROM v"); d.Verdict != viewkeeper.Accepted {
		t.Errorf("%+v", d)
	}
	n.Statement("CREATE VIEW y AS SELECT a FROM v")
}

// TestFailedCommits is C39 on the owner's side: each of its writes fails once, or is
// taken without the owner hearing of it. The statement is decided all the same, once,
// and so is the one after it.
func TestFailedCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy := w.proxy()
	owner := w.behind(proxy, "owner", "owner")
	n := w.Serve("n", "node")
	last := n.Statement("CREATE VIEW v AS SELECT a FROM t").Version
	i := 0
	for _, at := range []struct{ what, topic, key string }{
		{"the commit row", "table", "#commit"}, {"a row", "table", "main.x"}, {"the ids", "table", "#ids/"}, {"the decision", "decisions", ""},
	} {
		for name, action := range map[string]kafkaproxy.Action{"refused": kafkaproxy.Refuse, "its ack lost": kafkaproxy.LoseAnswer} {
			i++
			var hit atomic.Bool
			proxy.Intercept(func(r kafkaproxy.Request) kafkaproxy.Action {
				if r.Key != int16(kmsg.Produce) || hit.Load() {
					return kafkaproxy.Pass
				}
				for _, rec := range r.Records() {
					if rec.Topic == w.Topic(at.topic) && strings.HasPrefix(string(rec.Key), at.key) {
						hit.Store(true)
						return action
					}
				}
				return kafkaproxy.Pass
			})
			d := w.eventually(n, fmt.Sprint(w.Catalog, "-", i), fmt.Sprintf("CREATE VIEW x%d AS SELECT a FROM v", i))
			if d.Verdict != viewkeeper.Accepted || d.Version != last+1 {
				t.Errorf("%s %s: %s at %d after %d", at.what, name, verdict(d), d.Version, last)
			}
			// A node answers from the commit row, which comes first.
			fleet.Eventually(t, "the write of "+at.what, func() error {
				if !hit.Load() {
					return fmt.Errorf("it has not come")
				}
				return nil
			})
			proxy.Intercept(nil)
			last = d.Version
			after := n.Statement(fmt.Sprintf("CREATE VIEW y%d AS SELECT a FROM x%d", i, i))
			if after.Version != last+1 {
				t.Errorf("%s %s: the next one is at %d after %d", at.what, name, after.Version, last)
			}
			last = after.Version
		}
	}
	w.live(owner)
	seen := map[viewkeeper.Version]int{}
	for _, d := range n.Decisions(last) {
		seen[d.Version]++
	}
	if len(seen) != int(last) {
		t.Errorf("%d versions are decided of %d", len(seen), last)
	}
	fresh := w.Serve("fresh", "node")
	w.wantCount(fresh, "SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last, 1+2*i)
	fleet.SameDigests(t, n, fresh)
}

// TestOwnerThatIsSlow is C35: the owner takes longer than the client waits. No door
// says anything that could be read as done; asking again is safe, and says how it ended.
func TestOwnerThatIsSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.Serve("owner", "owner")
	n := w.Serve("n", "node")
	v := n.Statement("CREATE VIEW v AS SELECT a FROM t").Version
	owner.Signal(syscall.SIGSTOP)
	asks := []struct {
		what string
		args []string
	}{
		{"by a node", []string{"sql", "--server", n.HTTP, "--id", w.Catalog + "-node"}},
		{"by the topics", []string{"sql", "--brokers", w.Brokers, "--catalog", w.Catalog, "--id", w.Catalog + "-topics"}},
	}
	for i, ask := range asks {
		exit, out := w.command(append(ask.args, "--timeout", "300ms", "-c", fmt.Sprintf("CREATE VIEW slow%d AS SELECT a FROM v", i))...)
		if exit != 4 || strings.Contains(out, "accepted") {
			t.Errorf("%s: exit %d: %s", ask.what, exit, out)
		}
		if exit, out := w.command("decision", ask.args[len(ask.args)-1], "--server", n.HTTP); exit == 0 {
			t.Errorf("%s: the decision is known: %s", ask.what, out)
		}
	}
	if status, a, err := post(n, "300ms", w.Catalog+"-http", "CREATE VIEW slow AS SELECT a FROM v"); err != nil || status != http.StatusGatewayTimeout || a.ID == "" || a.Verdict != "" {
		t.Errorf("%d %+v %v", status, a, err)
	}
	if status, _, err := get(n.HTTP + "/v1/statements/" + w.Catalog + "-http"); err != nil || status != http.StatusAccepted {
		t.Errorf("a statement that was seen and not decided: %d, %v", status, err)
	}
	if exit, out := w.command("wait", fmt.Sprint(v+1), "--server", n.HTTP, "--timeout", "300ms"); exit != 4 {
		t.Errorf("wait: exit %d: %s", exit, out)
	}
	var problem struct{ Code string }
	if status := n.Call(http.MethodPost, "/v1/query", map[string]any{"sql": "SELECT 1", "min_version": v + 1, "timeout": "300ms"}, &problem); status != http.StatusGatewayTimeout {
		t.Errorf("a query that wants a later version: %d %s", status, problem.Code)
	}
	owner.Signal(syscall.SIGCONT)
	for i, ask := range asks {
		fleet.Eventually(t, ask.what+": the same again", func() error {
			exit, out := w.command(append(ask.args, "--output", "json", "-c", fmt.Sprintf("CREATE VIEW slow%d AS SELECT a FROM v", i))...)
			if exit != 0 || !strings.Contains(out, `"accepted"`) {
				return fmt.Errorf("exit %d: %s", exit, out)
			}
			return nil
		})
	}
	if d := w.eventually(n, w.Catalog+"-http", "CREATE VIEW slow AS SELECT a FROM v"); d.Version != v+3 {
		t.Errorf("%+v", d)
	}
	if got := len(n.Decisions(v + 3)); got != int(v)+3 {
		t.Errorf("%d decisions", got)
	}
}
