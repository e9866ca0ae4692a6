package kafka

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"github.com/hashicorp/go-multierror"
	"github.com/lovoo/goka"

	"github.com/viewkeeper/viewkeeper"
)

// MaxMessageBytes is max.message.bytes of the topics that hold statements, rows
// and decisions: the largest record batch that a broker takes, 8 MiB.
const MaxMessageBytes = 8 << 20

// MaxRecordBytes is the most that key, value and headers of one record may have
// together. It leaves room in MaxMessageBytes for the batch around the record.
const MaxRecordBytes = MaxMessageBytes - 4<<10

// Net timeouts. A silent broker holds a call for up to NetTimeout; what uses
// Kafka and must end sooner needs a deadline of its own (see [Bounded]).
const (
	DialTimeout = 3 * time.Second
	NetTimeout  = 6 * time.Second
	// ackTimeout is how long a broker waits for the other replicas. It answers
	// before NetTimeout cuts the connection, so that the outcome is known.
	ackTimeout = 4 * time.Second
	// groupTimeout is the session and rebalance time of the processor's group.
	groupTimeout = 10 * time.Second
)

// Settings makes clients from a user's [viewkeeper.KafkaSettings]. Copy it freely.
type Settings struct{ viewkeeper.KafkaSettings }

// NewSettings checks the settings and fills in defaults. The error names every
// wrong one.
func NewSettings(k viewkeeper.KafkaSettings) (Settings, error) {
	var errs *multierror.Error
	if len(k.Brokers) == 0 {
		errs = multierror.Append(errs, errors.New("no Kafka broker is given; name at least one as host:port"))
	}
	for _, b := range k.Brokers {
		host, port, err := net.SplitHostPort(b)
		if err == nil && host == "" {
			err = errors.New("the host is missing")
		}
		if err == nil {
			if n, perr := strconv.Atoi(port); perr != nil || n < 1 || n > 65535 {
				err = fmt.Errorf("%q is not a port", port)
			}
		}
		if err != nil {
			errs = multierror.Append(errs, fmt.Errorf("the Kafka broker %q is not host:port: %w", b, err))
		}
	}
	if k.ClientID == "" {
		k.ClientID = "viewkeeper"
	}
	return Settings{k}, errs.ErrorOrNil()
}

// Sarama gives a new tuned config. It starts from goka's own, which the view and
// the processor need in part, and replaces the defaults that lose or delay data:
//
//   - acks from all replicas and an idempotent producer (goka: from one);
//   - no gathering of records (goka: 100 ms, which is most of a statement's time);
//   - a new group begins with the oldest offset, else DDL that was sent before the
//     first start is skipped;
//   - protocol 2.8, the first with topic ids;
//   - timeouts of seconds and few retries, so that a lost broker is noticed; the
//     supervisor does the rest.
func (s Settings) Sarama() *sarama.Config {
	c := goka.DefaultConfig()
	c.ClientID = s.ClientID
	c.Version = sarama.V2_8_0_0
	c.MetricRegistry = noMetrics{}

	c.Net.DialTimeout = DialTimeout
	c.Net.ReadTimeout = NetTimeout
	c.Net.WriteTimeout = NetTimeout
	c.Net.MaxOpenRequests = 1 // what an idempotent producer asks for

	c.Admin.Timeout = ackTimeout
	c.Admin.Retry.Max = 2

	// Metadata.Full stays on: without it sarama can't find the controller of a
	// cluster before it has been asked for a topic.
	c.Metadata.AllowAutoTopicCreation = false
	c.Metadata.Retry.Max = 1
	c.Metadata.Retry.Backoff = 100 * time.Millisecond
	c.Metadata.RefreshFrequency = time.Minute
	c.Metadata.Timeout = NetTimeout

	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Idempotent = true
	c.Producer.Timeout = ackTimeout
	c.Producer.MaxMessageBytes = MaxRecordBytes
	c.Producer.Compression = sarama.CompressionNone // sizes stay predictable
	c.Producer.Flush.Frequency = 0
	c.Producer.Flush.Bytes = 0
	c.Producer.Flush.Messages = 0
	c.Producer.Retry.Max = 2
	c.Producer.Retry.Backoff = 100 * time.Millisecond

	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	c.Consumer.Fetch.Default = 1 << 20
	c.Consumer.Retry.Backoff = 250 * time.Millisecond
	c.Consumer.Offsets.Retry.Max = 2
	return c
}

// group gives the config of the processor's group. A join waits on the broker
// for the other members, so that its read timeout must outlast the rebalance.
func (s Settings) group(instanceID string) *sarama.Config {
	c := s.Sarama()
	c.Consumer.Group.InstanceId = instanceID
	c.Consumer.Group.Session.Timeout = groupTimeout
	c.Consumer.Group.Heartbeat.Interval = groupTimeout / 5
	c.Consumer.Group.Rebalance.Timeout = groupTimeout
	c.Net.ReadTimeout = groupTimeout + NetTimeout
	c.Consumer.Interceptors = []sarama.ConsumerInterceptor{allHeaders{}}
	// goka's own strategy goes by the members' names, so that a process that joins
	// could take the partition from an owner that is well. The sticky one leaves it
	// where it is. There is one input topic, hence nothing to copartition.
	c.Consumer.Group.Rebalance.Strategy = sarama.NewBalanceStrategySticky()
	return c
}
