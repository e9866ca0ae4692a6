package faults

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// newGuardedWorld is a world on a broker of its own, one that asks an authorizer and
// makes topics for whoever asks for one. Clients have no names without TLS or SASL, so
// that a right is taken from all of them; what has no rule is free to all.
func newGuardedWorld(t *testing.T) *world {
	t.Helper()
	tools := fleet.Find(t)
	dir := t.TempDir()
	kafkaScript := func(args ...string) string {
		cmd := exec.Command(filepath.Join(tools.Root, "scripts", "kafka"), args...)
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KAFKA_") }),
			"KAFKA_DIR="+filepath.Join(dir, "kafka"),
			"KAFKA_PROPERTIES=authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nallow.everyone.if.no.acl.found=true\nauto.create.topics.enable=true\n")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("scripts/kafka %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	brokers := kafkaScript("up", "1")
	t.Cleanup(func() { kafkaScript("down") })
	return newWorldOf(t, fleet.NewOn(t, brokers))
}

// deny takes an operation on a topic from everybody, and leaves all others.
func (w *world) deny(topic string, operation sarama.AclOperation) (allow func()) {
	w.t.Helper()
	resource := sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: w.Topic(topic), ResourcePatternType: sarama.AclPatternLiteral}
	acl := func(op sarama.AclOperation, p sarama.AclPermissionType) sarama.Acl {
		return sarama.Acl{Principal: "User:*", Host: "*", Operation: op, PermissionType: p}
	}
	w.must(w.cluster.CreateACL(resource, acl(sarama.AclOperationAll, sarama.AclPermissionAllow)))
	w.must(w.cluster.CreateACL(resource, acl(operation, sarama.AclPermissionDeny)))
	return func() {
		w.t.Helper()
		name := w.Topic(topic)
		_, err := w.cluster.DeleteACL(sarama.AclFilter{ResourceType: sarama.AclResourceTopic, ResourceName: &name,
			ResourcePatternTypeFilter: sarama.AclPatternLiteral, Operation: sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny}, false)
		w.must(err)
	}
}

// TestRights is C5, C15 and C16, on a broker that has an authorizer and makes topics of
// itself.
func TestRights(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)

	// C15. Readers, owners and commands come before the topics are there. None makes
	// one; each says what is missing, and goes on when somebody has made them.
	missing := &world{Fleet: w.Fleet, t: t, settings: w.settings, admin: w.admin, cluster: w.cluster, producer: w.producer}
	catalog := w.Catalog
	w.Catalog = catalog + "-late"
	early, owner := missing.Launch("early", "node"), missing.Launch("early-owner", "owner")
	h := missing.waitNotReady(early, viewkeeper.ReasonTopicMissing)
	if !strings.Contains(h.Details[viewkeeper.ReasonTopicMissing], "viewkeeper topics create") {
		t.Errorf("%+v", h)
	}
	missing.blocked(owner, viewkeeper.ReasonTopicMissing, "viewkeeper topics create")
	for _, args := range [][]string{{"history"}, {"nodes"}, {"export", t.TempDir()}, {"sql", "-c", "CREATE VIEW v AS SELECT 1 AS one", "--timeout", "2s"}, {"topics", "check"}} {
		if exit, out := missing.command(append(args, "--brokers", w.Brokers, "--catalog", w.Catalog)...); exit == 0 {
			t.Errorf("%v over topics that are not there: %s", args, out)
		}
	}
	found, err := w.admin.Describe(t.Context(), w.Topic("definitions"), w.Topic("table"), w.Topic("decisions"), w.Topic("nodes"))
	if err != nil || len(found) != 0 {
		t.Errorf("somebody made %v, %v", found, err)
	}
	missing.createTopics()
	missing.waitReady(owner)
	missing.waitReady(early)
	early.Statement("CREATE VIEW v AS SELECT 1 AS one")
	early.Stop()
	owner.Stop()
	w.Catalog = catalog

	// C16. The settings are hidden. They are trusted, and it is said that they are; who
	// wants to be strict does not work over them.
	var allow []func()
	for _, topic := range []string{"definitions", "table", "decisions", "nodes"} {
		allow = append(allow, w.deny(topic, sarama.AclOperationDescribeConfigs))
	}
	owner = w.Serve("owner", "owner")
	n := w.Serve("n", "node", "--max-stale", "3s")
	first := n.Statement("CREATE VIEW v AS SELECT a FROM t")
	s := w.waitDegraded(n, viewkeeper.ReasonTopicSettings, true)
	if d := s.Details[viewkeeper.ReasonTopicSettings]; !strings.Contains(d, "DescribeConfigs") {
		t.Errorf("%s", d)
	}
	strict, strictOwner := w.Launch("strict", "node", "--strict-settings"), w.Launch("strict-owner", "owner", "--strict-settings")
	w.waitNotReady(strict, viewkeeper.ReasonTopicSettings)
	w.blocked(strictOwner, viewkeeper.ReasonTopicSettings, "DescribeConfigs")
	for _, a := range allow {
		a()
	}
	w.waitReady(strict)
	w.waitReady(strictOwner)
	strict.Stop()
	strictOwner.Stop()

	// C5. The right to read the table is taken away while all run: degraded at once, not
	// ready after --max-stale, older with each look, and all well by itself. The process
	// lives on, and answers from what it has.
	back := w.deny("table", sarama.AclOperationRead)
	s = w.waitDegraded(n, viewkeeper.ReasonKafkaDenied, true)
	if d := s.Details[viewkeeper.ReasonKafkaDenied]; !strings.Contains(d, w.Topic("table")) || !strings.Contains(d, "kafka-acls") {
		t.Errorf("%s", d)
	}
	w.waitNotReady(n, viewkeeper.ReasonStale)
	w.live(n)
	n.WantRows("SELECT count(*) FROM v", 0, "2")
	age := w.metric(n, "viewkeeper_stale_seconds")
	fleet.Eventually(t, "what is served gets older", func() error {
		if now := w.metric(n, "viewkeeper_stale_seconds"); now <= age || age < 3 {
			return os.ErrDeadlineExceeded
		}
		return nil
	})
	if w.metric(n, "viewkeeper_ready") != 0 {
		t.Error("viewkeeper_ready is not 0")
	}
	back()
	w.waitReady(n)
	w.waitDegraded(n, viewkeeper.ReasonKafkaDenied, false)
	d := w.eventually(n, w.Catalog+"-after", "CREATE VIEW w AS SELECT a FROM v")
	if d.Version <= first.Version {
		t.Errorf("%+v", d)
	}
	w.waitReady(owner)

	// The other topics: a node that lacks one of them stays ready and says so.
	for _, c := range []struct {
		topic     string
		operation sarama.AclOperation
	}{{"decisions", sarama.AclOperationRead}, {"nodes", sarama.AclOperationRead}, {"definitions", sarama.AclOperationRead}, {"nodes", sarama.AclOperationWrite}} {
		back := w.deny(c.topic, c.operation)
		s := w.waitDegraded(n, viewkeeper.ReasonKafkaDenied, true)
		if d := s.Details[viewkeeper.ReasonKafkaDenied]; !s.Ready || !strings.Contains(d, w.Topic(c.topic)) {
			t.Errorf("%v of %s: ready %v, %s", c.operation, c.topic, s.Ready, d)
		}
		back()
		w.waitDegraded(n, viewkeeper.ReasonKafkaDenied, false)
	}

	// Who may not write statements is told so, and nothing is written.
	back = w.deny("definitions", sarama.AclOperationWrite)
	fleet.Eventually(t, "a statement is forbidden", func() error {
		status, a, err := post(n, "10s", w.Catalog+"-forbidden", "CREATE VIEW x AS SELECT a FROM v")
		if err == nil && status != http.StatusForbidden {
			t.Errorf("%d %+v", status, a)
		}
		return err
	})
	back()
	// Who may not write decisions does not commit, and does when it may.
	back = w.deny("decisions", sarama.AclOperationWrite)
	before := n.Status().Version
	v := w.submit(ddl("y", "CREATE VIEW y AS SELECT a FROM v"))
	w.waitHealth(owner, "the owner is denied", func(h health) bool { return slices.Contains(h.Reasons, viewkeeper.ReasonKafkaDenied) })
	back()
	w.waitReady(owner)
	if d := w.decision(n, v); d.Verdict != viewkeeper.Accepted || d.Version != before+1 {
		t.Errorf("%+v after %d", d, before)
	}
	n.Statement("CREATE VIEW z AS SELECT a FROM y")
}
