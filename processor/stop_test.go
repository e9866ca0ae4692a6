package processor

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// A broker that takes a write and does not answer holds sarama for many seconds. Run
// returns at its deadline all the same, and says that the process should end.
func TestStopWhileTheBrokerIsSilent(t *testing.T) {
	w := newWorld(t)
	m := w.start("node-1", func(p *Processor) { p.cfg.ExitDeadline = 100 * time.Millisecond })
	m.waitOwner()
	held, hold := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.broker.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		once.Do(func() { close(held) })
		<-hold
		return nil, nil, false
	})
	<-held // a heartbeat
	m.stop()
	var abandoned *kafka.AbandonedError
	if !errors.As(m.err, &abandoned) {
		t.Errorf("Run returned %v", m.err)
	}
	close(hold)
}
