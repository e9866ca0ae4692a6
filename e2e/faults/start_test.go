package faults

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// TestWhatIsReadIsGone is C2: at a restart a file, a table, a macro and a type that
// definitions read are no longer there. Owner and node start, what reads them is
// broken with its reason, what reads that names it, and all else is served. DDL goes
// on, and the broken ones can be dropped or are whole again when it comes back.
func TestWhatIsReadIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	whole := "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2);"
	w.Write(w.Base, whole+`CREATE TABLE gone (g INTEGER); CREATE MACRO twice(x) AS x * 2; CREATE TYPE mood AS ENUM ('good', 'bad');`)
	lake := filepath.Join(w.Dir, "lake")
	file := w.file("lake/there.csv", "x,y\n1,2\n")
	serve := func() *fleet.Proc { return w.Serve("n", "owner,node", "--lake", lake) }
	n := serve()
	last := viewkeeper.Version(0)
	for _, sql := range []string{
		"CREATE VIEW of_file AS SELECT x FROM read_csv('there.csv')", "CREATE VIEW over_file AS SELECT x FROM of_file",
		"CREATE VIEW of_table AS SELECT g FROM gone", "CREATE VIEW over_table AS SELECT g FROM of_table",
		"CREATE VIEW of_macro AS SELECT twice(a) AS a FROM t", "CREATE VIEW of_type AS SELECT 'good'::mood AS m",
		"CREATE VIEW fine AS SELECT a FROM t",
	} {
		last = n.Statement(sql).Version
	}
	n.Stop()
	w.must(os.Remove(file))
	w.Write(w.Base, whole)
	n = serve()
	n.WantRows("SELECT count(*) FROM fine", last, "2")
	broken := map[string]struct{ reason, cause string }{
		"main.of_file": {"there.csv", ""}, "main.over_file": {"main.of_file", "main.of_file"},
		"main.of_table": {"gone", ""}, "main.over_table": {"main.of_table", "main.of_table"},
		"main.of_macro": {"twice", ""}, "main.of_type": {"mood", ""},
	}
	got := failures(n)
	if len(got) != len(broken) {
		t.Errorf("%v", got)
	}
	for name, want := range broken {
		if f := got[name]; !strings.Contains(f.Reason, want.reason) || f.cause() != want.cause {
			t.Errorf("%s: %+v (%s), want %+v", name, f, f.cause(), want)
		}
	}
	w.waitDegraded(n, viewkeeper.ReasonBroken, true)
	// Nothing that is broken already stands in the way of anybody.
	n.Statement("CREATE VIEW more AS SELECT a FROM fine")
	n.Statement("DROP VIEW over_table")
	n.Statement("DROP VIEW of_table")
	if d := w.decision(n, w.submit(ddl("on_broken", "CREATE VIEW on_broken AS SELECT x FROM over_file"))); d.Verdict != viewkeeper.Refused {
		t.Errorf("a new reader of what is broken: %s", verdict(d))
	}
	// The file comes back, and the node finds out by itself.
	w.Write(file, "x,y\n1,2\n")
	fleet.Eventually(t, "over_file is whole again", func() error {
		if got := n.Definition("main.over_file"); got != "ok" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	n.WantRows("SELECT x FROM over_file", 0, "1")
	// Nothing was judged again meanwhile: the rows are those that were accepted.
	if d := n.Status(); d.Broken != 2 || d.Definitions != 6 {
		t.Errorf("%+v", d)
	}
}

type failureOf struct {
	Name, Stage, Reason string
	RootCause           *string `json:"root_cause"`
}

func (f failureOf) cause() string {
	if f.RootCause == nil {
		return ""
	}
	return *f.RootCause
}

func failures(n *fleet.Proc) map[string]failureOf {
	var page struct{ Failures []failureOf }
	n.Call(http.MethodGet, "/v1/failures", nil, &page)
	byName := map[string]failureOf{}
	for _, f := range page.Failures {
		byName[f.Name] = f
	}
	return byName
}

// TestOneThatAlwaysFails is C49: the first of many definitions never builds on a node.
// All others are built there, at the start and with each change, and it is counted by
// its name.
func TestOneThatAlwaysFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lake := filepath.Join(w.Dir, "lake")
	w.file("lake/there.csv", "x\n1\n")
	w.Serve("owner", "owner", "--lake", lake)
	const last = 30
	w.submit(ddl("a0", "CREATE VIEW a0 AS SELECT x FROM read_csv('there.csv')"))
	w.submit(ddl("over", "CREATE VIEW over AS SELECT x FROM a0"))
	for i := 3; i <= last; i++ {
		w.submit(ddl(fmt.Sprint("b", i), fmt.Sprintf("CREATE VIEW b%d AS SELECT a + %d AS a FROM t", i, i)))
	}
	n := w.Serve("n", "node", "--lake", t.TempDir())
	w.wantCount(n, "SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last, last-2)
	n.WantRows(fmt.Sprintf("SELECT max(a) FROM b%d", last), last, fmt.Sprint(last+2))
	for _, name := range []string{"main.a0", "main.over"} {
		if got := w.metric(n, "view_definition_load_failure", `view="`+name+`"`); got < 1 {
			t.Errorf("%s is counted %v times", name, got)
		}
	}
	if all, both := w.metric(n, "view_definition_load_failure"), w.metric(n, "view_definition_load_failure", `main.a0"`)+w.metric(n, "view_definition_load_failure", `main.over"`); all != both {
		t.Errorf("%v failures, %v of the two", all, both)
	}
	d := n.Statement("CREATE OR REPLACE VIEW b3 AS SELECT a FROM t")
	n.WantRows("SELECT max(a) FROM b3", d.Version, "2")
}

// TestHoleBelowTheEnd is C8: the offset just below the end of a topic holds no record,
// since a transaction's marker is there. Who starts then is ready in the normal time,
// node and owner, with and without somebody who writes a new end, and commands that
// read the topics end.
func TestHoleBelowTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Serve("owner", "owner")
	n := w.Serve("n", "node")
	v := n.Statement("CREATE VIEW v AS SELECT a FROM t").Version
	n.Stop()
	hole := func() {
		for _, topic := range []string{"table", "decisions", "nodes"} {
			w.transact(topic, true, record{[]byte("#nobody"), []byte("{}"), nil})
			w.transact(topic, false, record{[]byte("#nobody"), []byte("{}"), nil})
		}
	}
	hole()
	n = w.Serve("n", "node") // with its data
	n.WantRows("SELECT count(*) FROM v", v, "2")
	fresh := w.Serve("fresh", "node")
	fresh.WantRows("SELECT count(*) FROM v", v, "2")
	for _, p := range []*fleet.Proc{n, fresh} {
		w.historyWhole(p, 1)
	}
	// The owner's start meets it as well.
	w.Procs["owner"].Stop()
	hole()
	w.Serve("owner", "owner")
	w.eventually(n, w.Catalog+"-after", "CREATE VIEW w AS SELECT a FROM v")

	// Nobody is there to write a new end.
	w.Procs["owner"].Stop()
	hole()
	late := w.Serve("late", "node")
	late.WantRows("SELECT count(*) FROM w", v+1, "2")
	w.waitDegraded(late, viewkeeper.ReasonNoOwner, true)
	for _, command := range [][]string{{"history"}, {"export", t.TempDir()}, {"nodes"}} {
		if status, out := w.command(append(command, "--brokers", w.Brokers, "--catalog", w.Catalog)...); status != 0 {
			t.Errorf("%v: exit %d: %s", command, status, out)
		}
	}
	w.Serve("owner", "owner")
	w.waitDegraded(late, viewkeeper.ReasonNoOwner, false)

	// A marker among the statements is no statement, and is reported, since nobody can
	// tell it from one that was lost.
	w.transact("definitions", true, ddl("x", "CREATE VIEW x AS SELECT a FROM v"))
	w.transact("definitions", false, ddl("y", "CREATE VIEW y AS SELECT a FROM v"))
	d := w.eventually(late, w.Catalog+"-last", "CREATE VIEW z AS SELECT a FROM v")
	if d.Version < v+5 {
		t.Errorf("%+v", d)
	}
	for name, want := range map[string]string{"main.x": "ok", "main.z": "ok"} {
		if got := late.Definition(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// historyWhole waits until a node's history says that it is complete from a version.
func (w *world) historyWhole(p *fleet.Proc, from viewkeeper.Version) {
	w.t.Helper()
	fleet.Eventually(w.t, p.Name+": its history is whole", func() error {
		var page struct {
			From viewkeeper.Version `json:"complete_from"`
		}
		if _, err := p.Try(http.MethodGet, "/v1/decisions?limit=1", nil, &page); err != nil {
			return err
		}
		if page.From > from {
			return fmt.Errorf("it is from %d on", page.From)
		}
		return nil
	})
}

// load writes statements until stop is called, which gives the last version and how
// many there were.
func (w *world) load(every int, statement func(i int) record) (stop func() (viewkeeper.Version, int)) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var last viewkeeper.Version
	count := 0
	var failed error
	tick := newTicker(every)
	wg.Go(func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			offset, err := w.write("definitions", statement(count))
			if err != nil {
				failed = err
				return
			}
			last = viewkeeper.Version(offset + 1)
			count++
		}
	})
	stopped := false
	stop = func() (viewkeeper.Version, int) {
		cancel()
		wg.Wait()
		if failed != nil && !stopped {
			w.t.Errorf("writing statements: %v", failed)
		}
		stopped = true
		return last, count
	}
	w.t.Cleanup(func() { stop() })
	return stop
}

// TestStartUnderLoad is C9: while 50 statements a second come in, a node that is new
// and one that comes back are ready, which they would never be if they ran after an
// end that moves.
func TestStartUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Serve("owner", "owner")
	stop := w.load(50, func(i int) record {
		name := fmt.Sprint("v", i%10)
		return ddl(name, fmt.Sprintf("CREATE OR REPLACE VIEW %s AS SELECT a + %d AS a FROM t", name, i))
	})
	a := w.Serve("a", "node")
	b := w.Serve("b", "node")
	a.Kill()
	a = w.Serve("a", "node")
	last, n := stop()
	if n < 20 {
		t.Errorf("only %d statements came in meanwhile", n)
	}
	for _, p := range []*fleet.Proc{a, b} {
		p.WantRows(fmt.Sprintf("SELECT max(a) FROM v%d", (n-1)%10), last, fmt.Sprint(n-1+2))
	}
	fleet.SameDigests(t, a, b)
}

// TestNeverAPart is C11: while a node with many definitions starts, it answers 503,
// and the first answer that is not has all of them. It builds a factory at most three
// times on the way. Two thousand stand for the ten thousand of the field: the number
// only has to be large enough for the loading to be seen from outside.
func TestNeverAPart(t *testing.T) {
	t.Parallel()
	const many = 2000
	w := newWorld(t)
	w.Serve("owner", "owner")
	var batch []*sarama.ProducerMessage
	for from := 0; from < many; from += 500 {
		var set strings.Builder
		set.WriteString("BEGIN;\n")
		for i := from; i < from+500; i++ {
			of := "t"
			if i%10 != 0 {
				of = fmt.Sprint("v", i-1)
			}
			fmt.Fprintf(&set, "CREATE VIEW v%d AS SELECT a FROM %s;\n", i, of)
		}
		set.WriteString("COMMIT")
		batch = append(batch, &sarama.ProducerMessage{Topic: w.Topic("definitions"), Key: sarama.StringEncoder(fmt.Sprint("set", from)), Value: sarama.StringEncoder(set.String())})
	}
	w.must(w.producer.SendMessages(batch))
	last := viewkeeper.Version(len(batch))
	watcher := w.Serve("watcher", "node")
	w.wantCount(watcher, "SELECT count(*) FROM vk.definitions", last, many)

	n := w.Launch("n", "node")
	refused := 0
	fleet.Eventually(t, "the first answer", func() error {
		var answer struct {
			Rows [][]any
			Code string
		}
		status, err := n.Try(http.MethodPost, "/v1/query", map[string]any{"sql": "SELECT count(*) FROM vk.definitions"}, &answer)
		switch {
		case err != nil: // not listening yet
			return err
		case status == http.StatusServiceUnavailable:
			refused++
			if h, err := askHealth(n); err == nil && h.Ready && !slices.Contains([]int{http.StatusOK}, h.Status) {
				t.Errorf("%+v", h)
			}
			var page struct{ Definitions []any }
			if status := n.Call(http.MethodGet, "/v1/definitions", nil, &page); status == http.StatusOK && len(page.Definitions) == 0 {
				t.Error("a node that is not ready lists an empty catalog")
			}
			return fmt.Errorf("%s", answer.Code)
		case status != http.StatusOK:
			t.Fatalf("status %d %s", status, answer.Code)
		}
		if got := fmt.Sprint(answer.Rows[0][0]); got != fmt.Sprint(many) {
			t.Fatalf("the first answer has %s definitions", got)
		}
		return nil
	})
	if refused == 0 {
		t.Error("no query came while it loaded")
	}
	if builds := w.metric(n, "viewkeeper_builds_total"); builds < 1 || builds > 3 {
		t.Errorf("%v builds at the start", builds)
	}
	fleet.SameDigests(t, watcher, n)
}

// TestVersionsOutliveCompaction is C24, C25 and C29: views are created and dropped,
// the last statement is a DROP, a reader lies in the log before what it reads now; the
// table and the statements are compacted. Whoever starts after that has the same
// versions as who was there, everything builds in the order of who reads whom, and the
// next version is above all there were.
func TestVersionsOutliveCompaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Serve("owner", "owner")
	n := w.Serve("n", "node")
	w.submit(ddl("a", "CREATE VIEW a AS SELECT a FROM t"))
	w.submit(ddl("b", "CREATE VIEW b AS SELECT a FROM a"))
	w.submit(ddl("c", "CREATE VIEW c AS SELECT a FROM b"))
	for i := range 20 {
		name := fmt.Sprint("v", i)
		w.submit(ddl(name, "CREATE VIEW "+name+" AS SELECT a FROM t"))
		w.submit(record{[]byte(name), nil, nil})
	}
	w.submit(ddl("b", "CREATE OR REPLACE VIEW b AS SELECT a + 0 AS a FROM a"))
	w.submit(ddl("a", "CREATE OR REPLACE VIEW a AS SELECT a + 0 AS a FROM t"))
	w.submit(ddl("last", "CREATE VIEW last AS SELECT a FROM t"))
	last := w.submit(record{[]byte("last"), nil, nil})
	if d := w.decision(n, last); d.Verdict != viewkeeper.Accepted {
		t.Fatalf("%+v", d)
	}
	const versions = "SELECT name || ' ' || version FROM vk.definitions WHERE name NOT LIKE 'main.roll%' ORDER BY name"
	want := []string{fmt.Sprint("main.a ", last-2), fmt.Sprint("main.b ", last-3), "main.c 3"}
	n.WantRows(versions, last, want...)

	// Heartbeats close the table's segments; a statement would be one more.
	w.compact("table", func() {})
	w.Procs["owner"].Stop()
	for i := range 2 {
		fresh := w.Launch(fmt.Sprint("fresh", i), "node")
		w.waitReady(fresh)
		fresh.WantRows(versions, last, want...)
		fresh.WantRows("SELECT max(a) FROM c", last, "2")
		fleet.SameDigests(t, n, fresh)
	}
	rolls := 0
	w.compact("definitions", func() {
		rolls++
		name := fmt.Sprint("roll", rolls)
		w.submit(ddl(name, "CREATE VIEW "+name+" AS SELECT a FROM t"))
	})
	end, err := w.admin.EndOffset(t.Context(), w.Topic("definitions"))
	w.must(err)
	w.Serve("owner2", "owner")
	if d := w.decision(n, viewkeeper.Version(end)); d.Version <= last {
		t.Errorf("version %d after %d", d.Version, last)
	}
	n.Kill()
	n = w.Serve("n", "node")
	n.WantRows(versions, viewkeeper.Version(end), want...)
	w.wantCount(n, "SELECT count(*) FROM vk.definitions", viewkeeper.Version(end), 3+rolls)
	if d := n.Statement("CREATE VIEW last AS SELECT a FROM c"); d.Version != viewkeeper.Version(end)+1 {
		t.Errorf("version %d after %d", d.Version, end)
	}
	fleet.SameDigests(t, n, w.Procs["fresh0"], w.Procs["fresh1"])
}

// TestOneNameManyTimes is C27: one name is created and dropped a thousand times, which
// leaves a handful of records in the compacted table, and a start as fast as before:
// what a node reads does not grow with what happened.
func TestOneNameManyTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Serve("owner", "owner")
	n := w.Serve("n", "node")
	n.Statement("CREATE VIEW v AS SELECT a FROM t")
	const rounds = 1000
	var batch []*sarama.ProducerMessage
	for i := range rounds {
		create := sarama.StringEncoder(fmt.Sprintf("CREATE VIEW x AS SELECT a + %d AS a FROM v", i))
		batch = append(batch, &sarama.ProducerMessage{Topic: w.Topic("definitions"), Key: sarama.StringEncoder("x"), Value: create},
			&sarama.ProducerMessage{Topic: w.Topic("definitions"), Key: sarama.StringEncoder("x")})
	}
	w.must(w.producer.SendMessages(batch))
	last := w.submit(ddl("y", "CREATE VIEW y AS SELECT a FROM v"))
	n.WantRows("SELECT count(*) FROM vk.definitions", last, "2")
	before := len(w.read("table"))
	w.compact("table", func() {})
	keys := map[string]int{}
	after := w.read("table")
	for _, m := range after {
		keys[string(m.Key)]++
	}
	delete(keys, "#heartbeat") // one a second, in what is not compacted yet
	if total := len(keys); total > 10 {
		t.Errorf("%d keys are left of %d records: %v", total, before, keys)
	}
	fresh := w.Serve("fresh", "node")
	fresh.WantRows("SELECT count(*) FROM vk.definitions", last, "2")
	if read := w.metric(fresh, "viewkeeper_table_records_total"); read > float64(len(after)+60) {
		t.Errorf("a fresh node read %v records of the table, which has %d", read, len(after))
	}
}

// TestStricterRules is C30: owner and node come back with rules that what was accepted
// would break. It is loaded, built and served as it was, never judged again, and may be
// dropped and renamed; only what is new is held to the rules.
func TestStricterRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Serve("n", "owner,node")
	n.Statement("CREATE VIEW c0 AS SELECT a FROM t")
	for i := 1; i <= 5; i++ {
		n.Statement(fmt.Sprintf("CREATE VIEW c%d AS SELECT a FROM c%d", i, i-1))
	}
	n.Statement("CREATE VIEW long AS SELECT a /*" + strings.Repeat("x", 500) + "*/ FROM t")
	n.Statement("CREATE VIEW joined AS SELECT x.a FROM t x JOIN t y USING (a) JOIN t z USING (a)")
	n.Statement("CREATE VIEW nested AS SELECT " + strings.Repeat("(", 20) + "a" + strings.Repeat(")", 20) + " AS a FROM t")
	last := n.Statement("CREATE VIEW grouped AS SELECT count(*) AS c FROM (SELECT a FROM (SELECT a FROM t GROUP BY a) GROUP BY a) GROUP BY a").Version
	before := n.Status()
	n.Stop()
	n = w.Serve("n", "owner,node", "--max-body", "200", "--max-depth", "2", "--max-layers", "1", "--max-leaves", "2")
	for name, f := range failures(n) {
		t.Errorf("%s: %s: %s", name, f.Stage, f.Reason)
	}
	n.WantRows("SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last, "10")
	n.WantRows("SELECT max(a) FROM c5", last, "2")
	if after := n.Status(); after.Digest != before.Digest || after.BuildDigest != before.BuildDigest || after.Version != before.Version {
		t.Errorf("%+v before, %+v after", before, after)
	}
	for i, c := range []struct{ sql, want string }{
		{"CREATE VIEW deep AS SELECT a FROM c5", "refused COMPLEXITY"},
		{"CREATE VIEW many AS SELECT x.a FROM t x JOIN t y USING (a) JOIN t z USING (a)", "refused COMPLEXITY"},
		{"CREATE VIEW fine AS SELECT a FROM t", "accepted"},
		{"ALTER VIEW joined RENAME TO joined_up", "accepted"},
		{"COMMENT ON VIEW grouped IS 'as it was'", "accepted"},
		{"DROP VIEW c5", "accepted"},
		{"DROP VIEW long", "accepted"},
	} {
		if d := w.decision(n, w.submit(ddl(fmt.Sprint("k", i), c.sql))); verdict(d) != c.want {
			t.Errorf("%s: %s %s, want %s", c.sql, verdict(d), d.Message, c.want)
		}
	}
	// The limits of one text are what protects the engine from it: what is over them is
	// not given to it, is broken here, and can go.
	n.Stop()
	n = w.Serve("n", "owner,node", "--max-joins", "1", "--max-nesting", "10")
	if got := failures(n); len(got) != 2 || !strings.Contains(got["main.joined_up"].Reason, "joins") || !strings.Contains(got["main.nested"].Reason, "nested") {
		t.Errorf("%+v", got)
	}
	n.WantRows("SELECT max(a) FROM c4", last, "2")
	n.Statement("DROP VIEW nested")
}
