package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// blocked waits until an owner stands blocked for a reason, which its detail explains.
func (w *world) blocked(p *fleet.Proc, code string, words ...string) {
	w.t.Helper()
	h := w.waitHealth(p, "blocked for "+code, func(h health) bool { return h.State == "blocked" && slices.Contains(h.Reasons, code) })
	for _, word := range words {
		if !strings.Contains(h.Details[code], word) {
			w.t.Errorf("%s does not speak of %s: %s", code, word, h.Details[code])
		}
	}
}

// TestWrongSettings is C14: a topic that would lose records after a week, or later, is
// not worked with: which one, which setting, where it is set, and what it should be is
// said by the command, the owner and the node, and they go on when it is right.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	right := map[string]map[string]string{
		"definitions": {"cleanup.policy": "compact", "min.compaction.lag.ms": "604800000", "max.message.bytes": "8388608"},
		"table":       {"cleanup.policy": "compact", "min.compaction.lag.ms": "3600000", "max.message.bytes": "8388608", "message.timestamp.type": "LogAppendTime"},
		"decisions":   {"cleanup.policy": "delete", "max.message.bytes": "8388608"},
		"nodes":       {"cleanup.policy": "compact"},
	}
	wrong := []struct{ topic, setting, value string }{
		{"definitions", "cleanup.policy", "compact,delete"}, {"definitions", "cleanup.policy", "delete"},
		{"definitions", "min.compaction.lag.ms", "0"}, {"definitions", "max.message.bytes", "1000"},
		{"table", "cleanup.policy", "compact,delete"}, {"table", "cleanup.policy", "delete"},
		{"table", "min.compaction.lag.ms", "1000"}, {"table", "message.timestamp.type", "CreateTime"}, {"table", "max.message.bytes", "100000"},
		{"decisions", "cleanup.policy", "compact"}, {"decisions", "cleanup.policy", "compact,delete"},
		{"nodes", "cleanup.policy", "delete"},
	}
	for _, c := range wrong {
		w.configure(c.topic, map[string]string{c.setting: c.value})
		status, out := w.command("topics", "check", "--brokers", w.Brokers, "--catalog", w.Catalog, "--output", "table")
		for _, word := range []string{w.Topic(c.topic), c.setting, c.value, right[c.topic][c.setting]} {
			if status != 1 || !strings.Contains(out, word) {
				t.Errorf("%+v: exit %d, nothing of %s: %s", c, status, word, out)
			}
		}
		w.configure(c.topic, right[c.topic])
	}
	for _, topic := range []string{"table", "definitions", "decisions"} {
		policy := map[string]string{"table": "compact,delete", "definitions": "compact,delete", "decisions": "compact"}[topic]
		w.configure(topic, map[string]string{"cleanup.policy": policy})
		owner, n := w.Launch("owner", "owner"), w.Launch("n", "node")
		w.blocked(owner, viewkeeper.ReasonTopicSettings, w.Topic(topic), "cleanup.policy", policy)
		h := w.waitNotReady(n, viewkeeper.ReasonTopicSettings)
		if d := h.Details[viewkeeper.ReasonTopicSettings]; !strings.Contains(d, w.Topic(topic)) || !strings.Contains(d, policy) {
			t.Errorf("%s: %+v", topic, h)
		}
		w.configure(topic, right[topic])
		w.waitReady(owner)
		w.waitReady(n)
		n.Statement("CREATE OR REPLACE VIEW " + topic + " AS SELECT a FROM t")
		n.Stop()
		owner.Stop()
	}
}

// TestTruncatedTable is C17: the first records of the table are deleted. Who serves
// goes on and says so; who starts is not ready; no owner judges over half a catalog,
// until the table is put back, at the same versions. The same of the other topics costs
// what was in them and is said as well.
func TestTruncatedTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.Serve("owner", "owner")
	n := w.Serve("n", "node")
	for i := range 5 {
		n.Statement(fmt.Sprintf("CREATE VIEW v%d AS SELECT a FROM t", i))
	}
	truncate := func(topic string, before int64) {
		t.Helper()
		// A broker deletes records only where the policy is delete.
		policy := map[string]string{"cleanup.policy": "compact"}
		w.configure(topic, map[string]string{"cleanup.policy": "delete"})
		fleet.Eventually(t, "the policy is known where records are deleted", func() error {
			return w.cluster.DeleteRecords(w.Topic(topic), map[int32]int64{0: before})
		})
		if topic == "decisions" {
			policy["cleanup.policy"] = "delete"
		}
		w.configure(topic, policy)
	}
	// What was decided may go from the statements and the decisions: it is in the table.
	truncate("definitions", 2)
	truncate("decisions", 2)
	owner.Stop()
	owner = w.Serve("owner", "owner")
	last := w.eventually(n, w.Catalog+"-a", "CREATE VIEW after AS SELECT a FROM v0").Version
	fresh := w.Serve("fresh", "node")
	w.wantCount(fresh, "SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last, 6)
	w.historyWhole(fresh, 3)
	fresh.Stop()

	// In the middle of the table: some rows are there, some are not.
	middle := int64(0)
	for _, m := range w.read("table") {
		if string(m.Key) == "main.v2" {
			middle = m.Offset
		}
	}
	truncate("table", middle)
	w.waitDegraded(n, viewkeeper.ReasonTableTruncated, true)
	w.waitReady(n)
	w.wantCount(n, "SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last, 6)
	owner.Stop()
	owner = w.Launch("owner", "owner")
	w.blocked(owner, viewkeeper.ReasonTableTruncated, w.Topic("table"), "viewkeeper restore")
	fresh = w.Launch("fresh2", "node")
	w.waitNotReady(fresh, viewkeeper.ReasonTableTruncated)
	if got := fresh.Definition("main.v4"); got != "" {
		t.Errorf("a part of a catalog is shown: v4 is %s", got)
	}

	// The way out that was said: from who still has it all.
	backup := t.TempDir()
	w.Viewkeeper("export", backup, "--server", n.HTTP)
	owner.Stop()
	w.deleteTopic("table")
	w.createTopics()
	w.Viewkeeper("restore", backup, "--brokers", w.Brokers, "--catalog", w.Catalog)
	w.Serve("owner", "owner")
	d := w.eventually(n, w.Catalog+"-b", "CREATE VIEW restored AS SELECT a FROM v4")
	if d.Version <= last {
		t.Errorf("version %d after %d", d.Version, last)
	}
	w.waitReady(fresh)
	for _, p := range []*fleet.Proc{n, fresh} {
		p.WantRows("SELECT version FROM vk.definitions WHERE name IN ('main.v0', 'main.v4', 'main.after') ORDER BY version", d.Version, "1", "5", "6")
	}
	w.waitDegraded(n, viewkeeper.ReasonTableTruncated, false)
	fleet.SameDigests(t, n, fresh)
}

// TestDeletedTopics is C20: a topic is deleted while all run, and made anew, empty. No
// owner goes on from nothing, no node shows an empty catalog, and each topic has its
// own way out.
func TestDeletedTopics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.Serve("owner", "owner")
	n := w.Serve("n", "node")
	first := n.Statement("CREATE VIEW v AS SELECT a FROM t")
	backup := t.TempDir()
	w.Viewkeeper("export", backup, "--server", n.HTTP)

	// The nodes' own records: they write them again.
	w.deleteTopic("nodes")
	w.createTopics()
	last := w.eventually(n, w.Catalog+"-nodes", "CREATE VIEW nodes AS SELECT a FROM v")
	fleet.Eventually(t, "the node is seen again", func() error {
		_, out := w.command("nodes", "--brokers", w.Brokers, "--catalog", w.Catalog)
		if !strings.Contains(out, `"node":"n"`) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})

	// The history: what was, is gone with it; the catalog is not.
	w.deleteTopic("decisions")
	w.createTopics()
	last = w.eventually(n, w.Catalog+"-decisions", "CREATE VIEW decisions AS SELECT a FROM v")

	// The table, which is the truth.
	w.deleteTopic("table")
	w.blocked(owner, viewkeeper.ReasonTopicMissing, w.Topic("table"))
	w.createTopics()
	w.blocked(owner, viewkeeper.ReasonTopicRecreated, "viewkeeper restore")
	w.waitDegraded(n, viewkeeper.ReasonTopicRecreated, true)
	owner.Stop()
	owner = w.Launch("owner", "owner")
	w.blocked(owner, viewkeeper.ReasonTableBehind, "viewkeeper restore")
	fresh := w.Launch("fresh", "node")
	w.waitNotReady(fresh, viewkeeper.ReasonNoOwner)
	n.WantRows("SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last.Version, "3")
	owner.Stop()
	w.Viewkeeper("export", backup, "--server", n.HTTP)
	w.Viewkeeper("restore", backup, "--brokers", w.Brokers, "--catalog", w.Catalog)
	owner = w.Serve("owner", "owner")
	w.waitReady(fresh)
	fresh.WantRows("SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last.Version, "3")
	last = w.eventually(n, w.Catalog+"-table", "CREATE VIEW restored AS SELECT a FROM v")

	// The statements: nothing of the catalog is in them, but their offsets begin again.
	w.deleteTopic("definitions")
	w.createTopics()
	owner.Stop()
	owner = w.Launch("owner", "owner")
	w.blocked(owner, viewkeeper.ReasonTopicRecreated, "viewkeeper topics adopt")
	w.waitDegraded(n, viewkeeper.ReasonTopicRecreated, true)
	w.Viewkeeper("topics", "adopt", "--brokers", w.Brokers, "--catalog", w.Catalog)
	w.waitReady(owner)
	d := w.eventually(n, w.Catalog+"-definitions", "CREATE VIEW adopted AS SELECT a FROM v")
	if d.Version <= last.Version || last.Version <= first.Version {
		t.Errorf("versions %d, %d, %d", first.Version, last.Version, d.Version)
	}
	fresh.WantRows("SELECT count(*) FROM vk.definitions WHERE state = 'ok'", d.Version, "5")
	fleet.SameDigests(t, n, fresh)
}
