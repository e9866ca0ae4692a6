// Package e2e runs the binary as a fleet on real Apache Kafka, with the clients
// that people have: one broker here and in faults, three in cluster.
package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// produce writes one record with a foreign client and gives the version that its decision will have.
func produce(t *testing.T, f *fleet.Fleet, client, key, value string, headers ...string) viewkeeper.Version {
	t.Helper()
	topic := f.Topic("definitions")
	var out []byte
	switch client {
	case "kcat":
		args := []string{"-b", f.Tools.Brokers, "-t", topic, "-P", "-k", key, "-c", "1"}
		for _, h := range headers {
			args = append(args, "-H", h)
		}
		if value == "" {
			fleet.Output(t, "", "kcat", append(args, "-Z", "/dev/null")...)
		} else {
			file := filepath.Join(f.Dir, "record.sql")
			f.Write(file, value)
			fleet.Output(t, "", "kcat", append(args, file)...)
		}
		out = fleet.Output(t, "", "kcat", "-b", f.Tools.Brokers, "-t", topic, "-C", "-e", "-q", "-o", "-1", "-f", "%o\n")
	case "java":
		args := append([]string{"-cp", f.Tools.Jars() + "/*", filepath.Join("producers", "Produce.java"), f.Tools.Brokers, topic, key}, headers...)
		out = fleet.Output(t, value, "java", args...)
	case "python":
		args := append([]string{filepath.Join("producers", "produce.py"), f.Tools.Brokers, topic, key}, headers...)
		out = fleet.Output(t, value, f.Tools.Python(), args...)
	}
	offset, err := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 63)
	if err != nil {
		t.Fatalf("%s printed %q: %v", client, out, err)
	}
	return viewkeeper.Version(offset + 1)
}

// TestEveryDoor: DDL by every client that people have reaches every node, and each statement gets one decision.
func TestEveryDoor(t *testing.T) {
	f := fleet.New(t)
	f.Serve("owner", "owner")
	nodes := []*fleet.Proc{f.Serve("n1", "node"), f.Serve("n2", "node"), f.Serve("n3", "node")}

	// One definition by each door, each reading the one before.
	produce(t, f, "kcat", "by_kcat", "CREATE VIEW by_kcat AS SELECT a FROM t", "author=kcat")
	produce(t, f, "java", "by_java", "CREATE VIEW by_java AS SELECT a + 1 AS a FROM by_kcat", "author=java")
	produce(t, f, "python", "by_python", "CREATE VIEW by_python AS SELECT a + 1 AS a FROM by_java", "author=python", "id=from-python")
	nodes[0].Statement("CREATE VIEW by_http AS SELECT a + 1 AS a FROM by_python")
	f.Viewkeeper("sql", "--server", nodes[1].HTTP, "-c", "CREATE VIEW by_command AS SELECT a + 1 AS a FROM by_http")
	f.Viewkeeper("sql", "--brokers", f.Tools.Brokers, "--catalog", f.Catalog, "-c", "CREATE VIEW by_brokers AS SELECT a + 1 AS a FROM by_command")
	refused := produce(t, f, "kcat", "nope", "CREATE VIEW nope AS SELECT x FROM nowhere")

	for _, n := range nodes {
		n.WantRows("SELECT a FROM by_brokers ORDER BY a", refused, "6", "7")
	}

	// A statement id sent twice is decided once.
	twice := produce(t, f, "python", "by_python", "CREATE VIEW by_python AS SELECT a + 1 AS a FROM by_java", "id=from-python")
	reused := produce(t, f, "java", "other", "CREATE VIEW other AS SELECT 1 AS one", "id=from-python")

	// A null value drops the view of that name, and one that others read stays.
	dropped := produce(t, f, "java", "by_brokers", "")
	kept := produce(t, f, "python", "by_java", "")
	for _, n := range nodes {
		n.WantRows("SELECT count(*) FROM vk.definitions", kept, "5")
		if got := n.Definition("main.by_brokers"); got != "" {
			t.Errorf("%s still has by_brokers: %s", n.Name, got)
		}
	}

	want := map[viewkeeper.Version]string{
		1: "accepted", 2: "accepted", 3: "accepted", 4: "accepted", 5: "accepted", 6: "accepted",
		refused: "refused BIND", reused: "refused ID_REUSED", dropped: "accepted", kept: "refused BREAKS_DEPENDENTS",
	}
	for _, n := range nodes {
		got := map[viewkeeper.Version]string{}
		for _, d := range n.Decisions(kept) {
			if _, again := got[d.Version]; again {
				t.Errorf("%s shows two decisions for version %d", n.Name, d.Version)
			}
			got[d.Version] = strings.TrimSpace(string(d.Verdict) + " " + string(d.Code))
		}
		for v, verdict := range want {
			if got[v] != verdict {
				t.Errorf("%s: version %d is %q, want %q", n.Name, v, got[v], verdict)
			}
		}
		if got[twice] != "" {
			t.Errorf("%s: the id that was sent twice got a second decision: %s", n.Name, got[twice])
		}
		var status viewkeeper.Status
		n.Call(http.MethodGet, "/v1/status", nil, &status)
		if status.Definitions != 5 || status.Broken != 0 {
			t.Errorf("%s: %+v", n.Name, status)
		}
	}
	fleet.SameDigests(t, nodes...)
}

// TestRestarts: everything is still there after each part was stopped or killed, in several orders.
func TestRestarts(t *testing.T) {
	f := fleet.New(t)
	start := map[string]func() *fleet.Proc{
		"owner": func() *fleet.Proc { return f.Serve("owner", "owner") },
		"n1":    func() *fleet.Proc { return f.Serve("n1", "node") },
		"n2":    func() *fleet.Proc { return f.Serve("n2", "node") },
	}
	start["owner"]()
	start["n1"]()
	start["n2"]()
	n := 0
	change := func() {
		t.Helper()
		n++
		d := f.Procs["n1"].Statement(fmt.Sprintf("CREATE OR REPLACE VIEW v%d AS SELECT a + %d AS a FROM t", n, n))
		f.Procs["n2"].WantRows(fmt.Sprintf("SELECT max(a) FROM v%d", n), d.Version, strconv.Itoa(n+2))
	}
	change()
	for _, order := range [][]string{{"owner"}, {"n1"}, {"owner", "n2"}, {"n1", "n2", "owner"}, {"n2", "owner", "n1"}} {
		for i, part := range order {
			if (i+n)%2 == 0 {
				f.Procs[part].Kill()
			} else {
				f.Procs[part].Stop()
			}
		}
		for i := range order {
			start[order[len(order)-1-i]]()
		}
		for _, node := range []string{"n1", "n2"} {
			f.Procs[node].WantRows("SELECT count(*) FROM vk.definitions WHERE state = 'ok'", 0, strconv.Itoa(n))
		}
		change()
	}
	// A node that has never seen any of it catches up on all of it.
	fresh := f.Serve("n3", "node")
	fresh.WantRows("SELECT count(*) FROM vk.definitions WHERE state = 'ok'", 0, strconv.Itoa(n))
	all := fresh.Decisions(viewkeeper.Version(n))
	if len(all) != n {
		t.Errorf("%d decisions for %d statements", len(all), n)
	}
	fleet.SameDigests(t, f.Procs["n1"], f.Procs["n2"], fresh)
}

// TestOwnerMoves: when the owner goes, another process takes the role and goes on with the same versions.
func TestOwnerMoves(t *testing.T) {
	f := fleet.New(t)
	f.Serve("a", "owner,node")
	b := f.Serve("b", "owner,node")
	first := b.Statement("CREATE VIEW v AS SELECT a FROM t")

	var epoch viewkeeper.Epoch
	for round, end := range []func(*fleet.Proc){(*fleet.Proc).Stop, (*fleet.Proc).Kill} {
		// Whoever is the owner now goes; the other one answers.
		var s viewkeeper.Status
		b.Call(http.MethodGet, "/v1/status", nil, &s)
		if s.Owner != "a" && s.Owner != "b" {
			t.Fatalf("the owner is %q", s.Owner)
		}
		if s.Epoch <= epoch {
			t.Errorf("epoch %d after %d", s.Epoch, epoch)
		}
		epoch = s.Epoch
		end(f.Procs[s.Owner])
		left := f.Procs[map[string]string{"a": "b", "b": "a"}[s.Owner]]
		var d viewkeeper.Decision
		fleet.Eventually(t, "a decision by the new owner", func() error {
			status, err := left.Try(http.MethodPost, "/v1/statements?wait=node&timeout=20s",
				map[string]any{"sql": fmt.Sprintf("CREATE VIEW w%d AS SELECT a FROM v", round)}, &d)
			if err == nil && status != http.StatusOK && d.Code != viewkeeper.CodeExists {
				err = fmt.Errorf("status %d %s", status, d.Message)
			}
			return err
		})
		if d.Version <= first.Version || d.Owner != left.Name {
			t.Errorf("version %d by %s after version %d", d.Version, d.Owner, first.Version)
		}
		left.WantRows("SELECT count(*) FROM v", d.Version, "2")
		f.Serve(s.Owner, "owner,node")
		b = f.Procs["b"]
	}
}

// TestBrokenOnOneNode: a definition that cannot be built where a file is missing is broken there alone.
func TestBrokenOnOneNode(t *testing.T) {
	f := fleet.New(t)
	lake := func(name string, files ...string) string {
		dir := filepath.Join(f.Dir, "lake-"+name)
		for _, file := range append(files, "here.csv") {
			f.Write(filepath.Join(dir, file), "x,y\n1,2\n")
		}
		return dir
	}
	f.Serve("owner", "owner", "--lake", lake("owner", "there.csv"))
	full := f.Serve("full", "node", "--lake", lake("full", "there.csv"))
	poor := f.Serve("poor", "node", "--lake", lake("poor"))

	full.Statement("CREATE VIEW near AS SELECT x FROM read_csv('here.csv')")
	full.Statement("CREATE VIEW far AS SELECT x FROM read_csv('there.csv')")
	d := full.Statement("CREATE VIEW far_reader AS SELECT x + 1 AS x FROM far")
	full.WantRows("SELECT x FROM far_reader", d.Version, "2")
	poor.WantRows("SELECT x FROM near", d.Version, "1")
	for name, want := range map[string]string{"main.near": "ok", "main.far": "broken", "main.far_reader": "broken"} {
		if got := poor.Definition(name); got != want {
			t.Errorf("on the poor node %s is %s, want %s", name, got, want)
		}
		if got := full.Definition(name); got != "ok" {
			t.Errorf("on the full node %s is %s", name, got)
		}
	}
	var failures struct {
		Failures []struct {
			Name      string  `json:"name"`
			Stage     string  `json:"stage"`
			Reason    string  `json:"reason"`
			RootCause *string `json:"root_cause"`
		} `json:"failures"`
	}
	poor.Call(http.MethodGet, "/v1/failures", nil, &failures)
	byName := map[string]string{}
	for _, x := range failures.Failures {
		byName[x.Name] = x.Reason
		if x.Name == "main.far_reader" && (x.RootCause == nil || *x.RootCause != "main.far") {
			t.Errorf("far_reader is not said to fail because of far: %+v", x)
		}
	}
	if len(byName) != 2 || !strings.Contains(byName["main.far"], "there.csv") {
		t.Errorf("failures on the poor node: %+v", failures)
	}
	// Every node shows it.
	fleet.Eventually(t, "the fleet shows who has broken definitions", func() error {
		var nodes struct {
			Nodes []viewkeeper.Status `json:"nodes"`
		}
		if _, err := full.Try(http.MethodGet, "/v1/nodes", nil, &nodes); err != nil {
			return err
		}
		for _, s := range nodes.Nodes {
			if s.Node == "poor" && s.Broken == 2 {
				return nil
			}
		}
		return fmt.Errorf("%+v", nodes.Nodes)
	})
	// When the file comes, the node finds out by itself.
	f.Write(filepath.Join(f.Dir, "lake-poor", "there.csv"), "x,y\n1,2\n")
	fleet.Eventually(t, "the poor node repairs itself", func() error {
		if got := poor.Definition("main.far_reader"); got != "ok" {
			return fmt.Errorf("far_reader is %s", got)
		}
		return nil
	})
	if _, err := os.Stat(poor.Log); err != nil {
		t.Fatal(err)
	}
}
