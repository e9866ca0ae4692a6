package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// TestNotEnoughReplicas: while a topic that the owner writes to has fewer replicas in
// sync than it wants, nothing is decided, and that is said; statements are taken all the
// same, and each is decided once when the replica is back. The broker may have appended
// what it then calls an error.
func TestNotEnoughReplicas(t *testing.T) {
	f := fleet.New(t)
	settings, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: strings.Split(f.Brokers, ",")})
	if err != nil {
		t.Fatal(err)
	}
	emitter := settings.NewEmitter(kafka.Topics{Catalog: f.Catalog})
	defer func() { _ = emitter.Close() }()
	f.Serve("owner", "owner")
	f.Serve("n", "node")
	n := f.Procs["n"]
	n.Statement("CREATE VIEW v0 AS SELECT a FROM t")
	var last viewkeeper.Version
	statements := 1
	for round, topic := range []string{f.Topic("table"), f.Topic("decisions")} {
		setInsync(t, settings, topic, "3")
		broker := fmt.Sprint(round + 1)
		f.Tools.SignalBroker(broker, "KILL")
		for i := range 10 {
			fleet.Eventually(t, "a statement is taken", func() error {
				r, err := emitter.Emit(t.Context(), viewkeeper.Submission{Key: "any", ID: fmt.Sprintf("%d-%d", round, i),
					SQL: fmt.Sprintf("CREATE OR REPLACE VIEW v%d AS SELECT a + %d AS a FROM t", i%3, 10*round+i)})
				if err == nil {
					last = viewkeeper.Version(r.Offset + 1)
				}
				return err
			})
			statements++
		}
		fleet.Eventually(t, "the owner says that Kafka does not take it", func() error {
			resp, err := http.Get(f.Procs["owner"].HTTP + "/readyz")
			if err != nil {
				return err
			}
			text, err := io.ReadAll(resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err == nil && !strings.Contains(string(text), viewkeeper.ReasonKafkaAway) {
				err = fmt.Errorf("it says %s", text)
			}
			return err
		})
		f.Tools.StartBroker(broker)
		decided := n.Decisions(last)
		seen := map[string]int{}
		for _, d := range decided {
			if seen[d.StatementID]++; d.Verdict != viewkeeper.Accepted && d.Verdict != viewkeeper.Unchanged || seen[d.StatementID] > 1 {
				t.Errorf("%s: %s %s, %d times", d.StatementID, d.Verdict, d.Message, seen[d.StatementID])
			}
		}
		if len(seen) != statements {
			t.Errorf("%d statements have a decision, %d were sent", len(seen), statements)
		}
		setInsync(t, settings, topic, "2")
	}
	n.WantRows("SELECT max(a) FROM v0", last, "21")
	fresh := f.Serve("fresh", "node")
	fresh.WantRows("SELECT max(a) FROM v0", last, "21")
	fleet.SameDigests(t, n, fresh)
}

func setInsync(t *testing.T, s kafka.Settings, topic, n string) {
	t.Helper()
	fleet.Eventually(t, "min.insync.replicas of "+topic, func() error {
		a, err := sarama.NewClusterAdmin(s.Brokers, s.Sarama())
		if err != nil {
			return err
		}
		return errors.Join(a.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
			"min.insync.replicas": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &n}}, false), a.Close())
	})
}
