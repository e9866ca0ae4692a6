package processor

import (
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
)

// Nodes that are long gone are taken out of the nodes topic; others stay.
func TestOldNodesAreSwept(t *testing.T) {
	w := newWorld(t)
	put := func(key string, age time.Duration) {
		w.write(&sarama.ProducerMessage{Topic: w.topics.Nodes(), Key: sarama.StringEncoder(key), Value: sarama.StringEncoder("{}"), Timestamp: time.Now().Add(-age)})
	}
	put("old", 25*time.Hour)
	put("back", 25*time.Hour)
	put("young", time.Hour)
	put("back", 0)
	w.start("node-1", nil)
	var gone []string
	for {
		end, err := w.admin.EndOffset(w.ctx, w.topics.Nodes())
		w.must(err)
		if end > 4 {
			break
		}
	}
	w.read(w.topics.Nodes(), func(m *sarama.ConsumerMessage) {
		if m.Value == nil {
			gone = append(gone, string(m.Key))
		}
	})
	if len(gone) != 1 || gone[0] != "old" {
		t.Errorf("gone are %v", gone)
	}
}

// Damage that lay longer than compaction waits is healed as far as it goes, and said.
func TestOwnerlessTooLong(t *testing.T) {
	w := newWorld(t)
	w.begin(story())
	w.write(&sarama.ProducerMessage{Topic: w.topics.Table(), Key: sarama.StringEncoder("main.a")})
	m := w.start("second", func(p *Processor) {
		p.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	})
	if s := m.waitReason(viewkeeper.ReasonOwnerless); s.State != StateOwner || !strings.Contains(s.Reasons[viewkeeper.ReasonOwnerless], "export") {
		t.Errorf("%+v", s)
	}
	w.verify(story())
}
