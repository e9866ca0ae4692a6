package view

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// The same on Apache Kafka, when $KAFKA_BROKERS names a cluster: the topics as they
// are created pass their own checks, a node follows, and other topics under the same
// names are noticed.
func TestOnApacheKafka(t *testing.T) {
	brokers := os.Getenv("KAFKA_BROKERS")
	if brokers == "" {
		t.Skip("$KAFKA_BROKERS names no cluster")
	}
	was := topics
	topics = kafka.Topics{Catalog: fmt.Sprintf("view-%x", time.Now().UnixNano())}
	defer func() { topics = was }()
	addr, _, _ := strings.Cut(brokers, ",")

	createTopics(t, addr)
	a, err := settings(t, addr).OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer func() {
		for _, topic := range topics.All() {
			deleteTopic(t, addr, topic)
		}
	}()
	if problems, err := a.CheckTopics(t.Context(), topics, kafka.CheckOptions{}); err != nil || len(problems) != 0 {
		t.Errorf("%v, %v", problems, err)
	}
	o := newOwner(t, addr)
	o.takeOver()
	fillCatalog(o)
	cfg := config(t, addr, "n1")
	cfg.Kafka.Brokers = strings.Split(brokers, ",")
	n := run(t, cfg, fast())
	n.ready()
	n.version(10)
	n.has("main.v", "main.w")
	n.whole()
	if got, complete, _ := n.page(DecisionQuery{Limit: 100}); len(got) != 10 || complete != 0 {
		t.Errorf("%v, complete from %d", got, complete)
	}
	n.sees("n1")
	o.accept("", view("x", "SELECT a FROM v"))
	if reached, missing, err := n.WaitFleet(t.Context(), 11); err != nil || len(reached) != 1 || len(missing) != 0 {
		t.Errorf("%v, %v, %v", reached, missing, err)
	}

	deleteTopic(t, addr, topics.Table())
	n.degraded(viewkeeper.ReasonTopicMissing, true)
	createTopics(t, addr)
	n.degraded(viewkeeper.ReasonTopicRecreated, true)
	n.has("main.v", "main.w", "main.x")
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	n.version(12)
	n.degraded(viewkeeper.ReasonTopicRecreated, false)
}

// deleteTopic is for tests alone: nothing of viewkeeper deletes a topic.
func deleteTopic(t *testing.T, addr, topic string) {
	t.Helper()
	a, err := sarama.NewClusterAdmin([]string{addr}, settings(t, addr).Sarama())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.DeleteTopic(topic); err != nil {
		t.Error(err)
	}
}
