package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// A fleet on real Kafka loses its table, by deletion, by DeleteRecords and by a corrupted
// row. Its node and its owner run all the time: the node serves, the owner refuses, and
// after the restore both go on, with the versions and the digest that were there.
func TestRestoreOnRealKafka(t *testing.T) {
	f := fleet.New(t)
	flags := []string{"--brokers", f.Tools.Brokers, "--catalog", f.Catalog}
	run := func(args ...string) string { t.Helper(); return f.Viewkeeper(append(args, flags...)...) }
	f.Serve("owner", "owner")
	n := f.Serve("n1", "node")
	n.Statement("CREATE VIEW a AS SELECT a FROM t")
	export := t.TempDir()
	run("export", export)
	n.Statement("CREATE VIEW b AS SELECT a FROM a")
	last := n.Statement("COMMENT ON VIEW b IS 'kept'").Version
	digest := n.Status().Digest
	admin, err := sarama.NewClusterAdmin(strings.Split(f.Tools.Brokers, ","), func() *sarama.Config {
		c := sarama.NewConfig()
		c.Version = sarama.V2_8_0_0
		return c
	}())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	again := func(what, report string) {
		t.Helper()
		if !strings.Contains(report, "restored ") {
			t.Fatalf("%s: %s", what, report)
		}
		fleet.Eventually(t, what, func() error {
			if s := n.Status(); !s.Ready || s.Version < last || s.Digest != digest || len(s.Degraded) > 0 {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
		d := n.Statement("COMMENT ON VIEW b IS '" + what + "'")
		if d.Version != last+1 {
			t.Errorf("%s: the next version is %d after %d", what, d.Version, last)
		}
		last, digest = d.Version, n.Status().Digest
	}
	remake := func() {
		t.Helper()
		if err := admin.DeleteTopic(f.Topic("table")); err != nil {
			t.Fatal(err)
		}
		fleet.Eventually(t, "the topic is gone", func() error {
			topics, err := admin.ListTopics()
			if _, there := topics[f.Topic("table")]; there && err == nil {
				return fmt.Errorf("it is there")
			}
			return err
		})
		run("topics", "create")
	}

	remake()
	again("deleted", run("restore", export))

	// The broker wants another policy first.
	policy := func(value string) {
		t.Helper()
		set := map[string]sarama.IncrementalAlterConfigsEntry{"cleanup.policy": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}}
		if err := admin.IncrementalAlterConfig(sarama.TopicResource, f.Topic("table"), set, false); err != nil {
			t.Fatal(err)
		}
	}
	policy("delete")
	fleet.Eventually(t, "the policy is known where records are deleted", func() error {
		return admin.DeleteRecords(f.Topic("table"), map[int32]int64{0: 1})
	})
	policy("compact")
	if dry := run("restore", "--from", "decisions", "--dry-run", "--output", "table"); !strings.Contains(dry, "begins at offset 1") {
		t.Errorf("of a truncated table it says\n%s", dry)
	}
	remake()
	again("from the decisions", run("restore", "--from", "decisions"))

	p, err := sarama.NewSyncProducer(strings.Split(f.Tools.Brokers, ","), func() *sarama.Config {
		c := sarama.NewConfig()
		c.Producer.Return.Successes = true
		return c
	}())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, key := range []string{"main.a", "#commit", "stranger"} {
		if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: f.Topic("table"), Key: sarama.StringEncoder(key), Value: sarama.StringEncoder("rubbish")}); err != nil {
			t.Fatal(err)
		}
	}
	again("repaired", run("restore", "--from", "table"))
	n.WantRows("SELECT count(*) FROM b", last, "2")
}
