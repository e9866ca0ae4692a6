package traps

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// twenty sends twenty statements at once, one of them large.
func (w *world) twenty(round int) {
	w.t.Helper()
	for i := range 20 {
		switch {
		case i == 7:
			w.emit("accepted", fmt.Sprintf("CREATE OR REPLACE VIEW large AS SELECT a + %d AS a FROM t /* %s */", round, strings.Repeat("x", 40<<10)))
		case i%5 == 3:
			w.emit("refused BIND", fmt.Sprintf("CREATE VIEW x%d AS SELECT nothing FROM t", i))
		default:
			w.emit("accepted", fmt.Sprintf("CREATE OR REPLACE VIEW v%d AS SELECT a + %d AS a FROM t", i%4, 100*round+i))
		}
	}
}

// goka marks the offset of a later statement over one whose table write failed, and it
// is lost. Here one request of the owner fails while twenty statements are in flight, the
// first, the second and so on, before the broker has it and after: none is lost, none is
// decided twice.
func TestOneWriteFailsAmongTwenty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proxy()
	n := w.Launch("n", "node")
	w.via(p, "owner", "owner")
	w.twenty(0)
	w.decided(n)
	round := 0
	for at := 1; at <= 5; at++ {
		for _, how := range []kafkaproxy.Action{kafkaproxy.Refuse, kafkaproxy.LoseAnswer} {
			round++
			var mu sync.Mutex
			seen := 0
			failed := make(chan struct{})
			p.Intercept(func(r kafkaproxy.Request) kafkaproxy.Action {
				mu.Lock()
				defer mu.Unlock()
				if r.Key != int16(kmsg.Produce) || wrote("#heartbeat")(w, r) {
					return kafkaproxy.Pass
				}
				if seen++; seen != at {
					return kafkaproxy.Pass
				}
				close(failed)
				return how
			})
			w.twenty(round)
			<-failed
			w.decided(n)
		}
	}
	w.verify(n, w.Serve("fresh", "node"))
}

// The brokers go away between a commit row and what follows it.
func TestBrokersAwayAmongTwenty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proxy()
	n := w.Launch("n", "node")
	w.via(p, "owner", "owner")
	w.twenty(0)
	w.decided(n)
	for round, fault := range []func(){p.Cut, p.Silence} {
		gone := make(chan struct{})
		var once sync.Once
		p.Intercept(func(r kafkaproxy.Request) kafkaproxy.Action {
			if !flight(w, r) {
				return kafkaproxy.Pass
			}
			act := kafkaproxy.Pass
			once.Do(func() {
				fault()
				close(gone)
				act = kafkaproxy.Hold // it comes long after its writer gave it up
			})
			return act
		})
		w.twenty(round + 1)
		<-gone
		w.says("owner", "KAFKA_AWAY")
		p.Heal()
		w.decided(n)
	}
	w.verify(n, w.Serve("fresh", "node"))
}

// A row is over its topic's limit, which somebody has lowered: the owner says so and
// waits, and goes on when the limit is right again.
func TestRowOverTheTopicsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Launch("n", "node")
	w.Launch("owner", "owner")
	w.twenty(0)
	w.decided(n)
	for i, topic := range []string{w.topics.Table(), w.topics.Decisions()} {
		w.set(topic, "max.message.bytes", "20000")
		w.twenty(i + 1)
		w.says("owner", "TOPIC_SETTINGS")
		w.set(topic, "max.message.bytes", "8388608")
		w.decided(n)
	}
	w.verify(n, w.Serve("fresh", "node"))
}

// set sets one setting of a topic.
func (w *world) set(topic, name, value string) {
	w.t.Helper()
	a, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer a.Close()
	w.must(a.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		name: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}}, false))
}

// says waits until a process gives a reason in /readyz.
func (w *world) says(name, reason string) {
	w.t.Helper()
	p := w.Procs[name]
	fleet.Eventually(w.t, name+" says "+reason, func() error {
		select {
		case <-p.Exited:
			w.t.Fatalf("%s ended by itself", name)
		default:
		}
		resp, err := http.Get(p.HTTP + "/readyz")
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err == nil && !strings.Contains(string(text), reason) {
			err = fmt.Errorf("it says %s", text)
		}
		return err
	})
}
