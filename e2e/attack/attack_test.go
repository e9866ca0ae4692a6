// Package attack sends what kills, hangs and blows up engines to real processes, by
// Kafka and by HTTP, while others go on. The long list is in
// registry/duckdb/engine/testdata/attacks; here are the worst of each kind.
package attack

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// bound is the longest that somebody else waits: a statement that hangs is given up
// after two times 10 s, and each engine it costs is back in a second, on a machine
// that does nothing else.
const bound = 3 * time.Minute

func doubling(n int) string {
	var b strings.Builder
	b.WriteString("WITH x0 AS (SELECT 1 AS a)")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, ", x%d AS (SELECT {'l': a, 'r': a} AS a FROM x%d)", i, i-1)
	}
	return b.String() + fmt.Sprintf(" SELECT a FROM x%d", n)
}

const (
	hang   = "SELECT 1 LIMIT levenshtein(repeat('a', 200000), repeat('b', 200000))"
	crash  = "SELECT json_structure(repeat('[', 1000000) || repeat(']', 1000000)) FROM t"
	memory = "SELECT i, count(*) FROM range(200000000) r(i) GROUP BY i"
	loop   = "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT 1 FROM x) SELECT n FROM x WHERE n = 2"
)

// TestOthersGoOn: the owner and the node live through it, each attack has an answer,
// and whoever else asks is answered, late at worst.
func TestOthersGoOn(t *testing.T) {
	f := fleet.New(t)
	owner := f.Serve("owner", "owner", "--memory-limit", "600MB")
	node := f.Serve("node", "node", "--memory-limit", "600MB", "--query-timeout", "2m")
	node.Statement("CREATE VIEW good AS SELECT a FROM t")
	pids := []int{owner.PID(), node.PID()}

	stop := make(chan struct{})
	var others sync.WaitGroup
	longest := map[string]time.Duration{}
	counts := map[string]int{}
	cut := 0
	var mu sync.Mutex
	goOn := func(what string, ask func(n int) error) {
		others.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				err := ask(n)
				mu.Lock()
				longest[what] = max(longest[what], time.Since(began))
				counts[what]++
				mu.Unlock()
				if err != nil && errors.Is(err, io.EOF) && what == "query" {
					mu.Lock()
					cut++ // its engine was lost between its first byte and its last
					mu.Unlock()
				} else if err != nil {
					t.Errorf("somebody else's %s: %v", what, err)
				}
			}
		})
	}
	goOn("statement", func(n int) error {
		return submit(node, fmt.Sprintf("CREATE OR REPLACE VIEW good AS SELECT a + %d AS a FROM t", n))
	})
	goOn("query", func(int) error {
		var answer struct {
			Rows         [][]any
			Code, Detail string
		}
		status, err := node.Try(http.MethodPost, "/v1/query", map[string]any{"sql": "SELECT count(*) FROM good"}, &answer)
		if err == nil && (status != http.StatusOK || len(answer.Rows) != 1) {
			err = fmt.Errorf("%d %s %s", status, answer.Code, answer.Detail)
		}
		return err
	})

	var attacks sync.WaitGroup
	attacks.Go(func() { attackByKafka(t, f, node) })
	attacks.Go(func() { attackByHTTP(t, node) })
	attacks.Go(func() { attackByCheck(t, node) })
	attacks.Wait()
	close(stop)
	others.Wait()
	for what, took := range longest {
		t.Logf("somebody else's %s: %d, the longest %s", what, counts[what], took.Round(time.Millisecond))
		if took > bound {
			t.Errorf("somebody else's %s took %s", what, took)
		}
		if counts[what] == 0 {
			t.Errorf("nobody else asked for a %s", what)
		}
	}
	if t.Logf("%d answers were cut", cut); cut*100 > counts["query"] {
		t.Errorf("of %d", counts["query"])
	}
	if now := []int{owner.PID(), node.PID()}; now[0] != pids[0] || now[1] != pids[1] {
		t.Errorf("processes %v became %v", pids, now)
	}
	node.WaitStatus("/readyz", http.StatusOK)
	if err := submit(node, "CREATE OR REPLACE VIEW good AS SELECT b FROM t WHERE a = 2"); err != nil {
		t.Fatal(err)
	}
	node.WantRows("SELECT * FROM good", 0, "two")
}

// submit wants a statement accepted and built. A 503 says that nothing was written: the
// owner's heartbeat was late, on a machine that has too much to do.
func submit(node *fleet.Proc, sql string) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		var d struct{ Code, Message, Detail string }
		status, err := node.Try(http.MethodPost, "/v1/statements?wait=node&timeout="+bound.String(), map[string]any{"sql": sql}, &d)
		switch {
		case err == nil && status == http.StatusOK:
			return nil
		case err != nil || status != http.StatusServiceUnavailable || time.Since(began) > bound:
			return fmt.Errorf("%d %s %s %s (%v)", status, d.Code, d.Message, d.Detail, err)
		}
	}
}

// attackByKafka writes records as any producer may, and wants each decided.
func attackByKafka(t *testing.T, f *fleet.Fleet, node *fleet.Proc) {
	settings, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: strings.Split(f.Brokers, ",")})
	if err != nil {
		t.Error(err)
		return
	}
	emitter := settings.NewEmitter(kafka.Topics{Catalog: f.Catalog})
	defer emitter.Close()
	for _, attack := range []struct {
		name string
		sub  viewkeeper.Submission
		want string
	}{
		{"doubling", viewkeeper.Submission{SQL: "CREATE VIEW evil AS " + doubling(40)}, "refused ENGINE_"},
		{"hang", viewkeeper.Submission{SQL: "CREATE VIEW evil AS " + hang}, "refused ENGINE_"},
		{"crash", viewkeeper.Submission{SQL: "CREATE OR REPLACE VIEW evil AS " + crash}, "accepted "},
		{"no JSON", viewkeeper.Submission{SQL: "CREATE OR REPLACE VIEW evil AS SELECT 1e999 AS x"}, "accepted "},
		{"an aborted trial", viewkeeper.Submission{SQL: "BEGIN; CREATE VIEW e0 AS SELECT 1 AS x; CREATE VIEW e1 AS SELECT x FROM e0 LIMIT 'x'::INT; CREATE VIEW e2 AS FROM e0; COMMIT"}, "refused BIND"},
		{"a second statement", viewkeeper.Submission{SQL: "CREATE VIEW e0 AS SELECT 1; DROP VIEW good"}, "refused "},
		{"a NUL", viewkeeper.Submission{SQL: "CREATE VIEW e0 AS SELECT 1\x00"}, "refused SYNTAX"},
		{"broken text", viewkeeper.Submission{SQL: "CREATE VIEW e0 AS SELECT '\xff'"}, "refused SYNTAX"},
		{"a long author", viewkeeper.Submission{SQL: "CREATE VIEW e0 AS SELECT 1", Author: strings.Repeat("a", 4<<20)}, "refused OPTION"},
		{"depth", viewkeeper.Submission{SQL: "CREATE VIEW e0 AS SELECT " + strings.Repeat("- ", 30000) + "1"}, "refused COMPLEXITY"},
		{"a way out", viewkeeper.Submission{SQL: "CREATE VIEW e0 AS FROM read_text('/etc/passwd')"}, "refused NOT_ALLOWED"},
	} {
		attack.sub.Key, attack.sub.ID = "an attack", "attack "+attack.name // a key that names nothing
		if _, err := emitter.Emit(t.Context(), attack.sub); err != nil {
			t.Errorf("%s: %v", attack.name, err)
			continue
		}
		d, err := decision(node, attack.sub.ID)
		if got := fmt.Sprint(d.Verdict, " ", d.Code); err != nil || !strings.HasPrefix(got, attack.want) {
			t.Errorf("%s: %s: %s %v", attack.name, got, d.Message, err)
		}
	}
}

// decision waits until a node knows the decision of a statement.
func decision(node *fleet.Proc, id string) (d viewkeeper.Decision, err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < bound; <-tick.C {
		status, err := node.Try(http.MethodGet, "/v1/statements/"+strings.ReplaceAll(id, " ", "%20"), nil, &d)
		if err == nil && d.Verdict != "" && (status == http.StatusOK || status == http.StatusUnprocessableEntity) {
			return d, nil
		}
	}
	return d, fmt.Errorf("it was not decided in %s", bound)
}

// attackByHTTP asks queries, and wants each answered with a code.
func attackByHTTP(t *testing.T, node *fleet.Proc) {
	for _, attack := range []struct {
		name, sql, timeout string
		want               string
	}{
		{"crash", crash, "1m", "ENGINE_KILLED"},
		{"hang", hang, "2s", "TIMEOUT"},
		{"memory", memory, "1m", "OUT_OF_MEMORY ENGINE_KILLED"},
		{"loop", loop, "2s", "TIMEOUT"},
		{"crash again", crash, "1m", "ENGINE_KILLED"},
		{"a setting", "SET memory_limit = '100GB'", "5s", "NOT_ONE_QUERY"},
		{"a way out", "FROM read_csv('/etc/passwd')", "5s", "NOT_ALLOWED"},
		{"layers", strings.Repeat("SELECT max(a) AS a FROM (", 30) + "FROM t" + strings.Repeat(")", 30), "30s", "COMPLEXITY"},
		{"depth", "SELECT " + strings.Repeat("NOT ", 30000) + "true", "30s", "COMPLEXITY"},
		{"a large text", "SELECT '" + strings.Repeat("x", 3<<20) + "'", "30s", "TOO_LARGE"},
	} {
		var problem struct{ Code, Detail string }
		status, err := node.Try(http.MethodPost, "/v1/query", map[string]any{"sql": attack.sql, "timeout": attack.timeout}, &problem)
		if err != nil || status < 400 || !strings.Contains(attack.want, problem.Code) || problem.Code == "" {
			t.Errorf("%s: %d %s %s %v", attack.name, status, problem.Code, problem.Detail, err)
		}
	}
}

// attackByCheck asks what the judge would say to what hangs it.
func attackByCheck(t *testing.T, node *fleet.Proc) {
	for _, sql := range []string{"CREATE VIEW e9 AS " + hang, "CREATE VIEW e9 AS " + doubling(40)} {
		var answer struct{ Decision viewkeeper.Decision }
		status, err := node.Try(http.MethodPost, "/v1/check", map[string]any{"sql": sql}, &answer)
		if err != nil || status != http.StatusOK || !strings.HasPrefix(string(answer.Decision.Code), "ENGINE_") {
			t.Errorf("%d %s %s %v", status, answer.Decision.Code, answer.Decision.Message, err)
		}
	}
}
