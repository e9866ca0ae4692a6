package kafka_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// start gives a broker in memory and settings for it.
func start(t *testing.T, extra ...kfake.Opt) (*broker.Broker, kafka.Settings) {
	t.Helper()
	b, err := broker.StartWith(t.Context(), broker.Options{Addr: "127.0.0.1:0", Extra: extra})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, settings(t, b.Addr())
}

func settings(t *testing.T, addr string) kafka.Settings {
	t.Helper()
	s, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func admin(t *testing.T, s kafka.Settings) *kafka.Admin {
	t.Helper()
	a, err := s.OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

var flights = kafka.Topics{Catalog: "flights"}

func TestSettingsNameEveryProblem(t *testing.T) {
	_, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{"localhost", ":9092", "h:0", "good:9092"}})
	for _, want := range []string{`"localhost"`, `":9092"`, `"h:0"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "good") {
		t.Errorf("error %v names a good broker", err)
	}
	if _, err := kafka.NewSettings(viewkeeper.KafkaSettings{}); err == nil {
		t.Error("no broker is accepted")
	}
}

// Builders keep the config they get and write into it, so each gets its own.
func TestSaramaGivesANewValidConfigEachTime(t *testing.T) {
	s := settings(t, "127.0.0.1:9092")
	a, b := s.Sarama(), s.Sarama()
	a.ClientID = "changed"
	if b.ClientID != "viewkeeper" {
		t.Error("two configs share their memory")
	}
	if err := b.Validate(); err != nil {
		t.Error(err)
	}
}

func TestTopicsAreCreatedAsTheChecksWantThem(t *testing.T) {
	for _, brokers := range []int{1, 3} {
		_, s := start(t, kfake.NumBrokers(brokers))
		a := admin(t, s)

		problems, err := a.CheckTopics(t.Context(), flights, kafka.CheckOptions{})
		if err != nil || len(problems) != 4 || !problems[0].Missing || !problems[0].Fatal {
			t.Fatalf("before creation: %v, %v", problems, err)
		}
		made, err := a.CreateTopics(t.Context(), flights)
		if err != nil || !slices.Equal(made, flights.All()) {
			t.Fatalf("made %v, %v", made, err)
		}
		problems, err = a.CheckTopics(t.Context(), flights, kafka.CheckOptions{})
		if err != nil || len(problems) != 0 {
			t.Errorf("%d brokers: after creation: %v, %v", brokers, problems, err)
		}
		made, err = a.CreateTopics(t.Context(), flights)
		if err != nil || len(made) != 0 {
			t.Errorf("a second time: made %v, %v", made, err)
		}
		found, err := a.Describe(t.Context(), flights.All()...)
		if err != nil || found[flights.Table()].Replication != min(3, brokers) {
			t.Errorf("%v, %v", found, err)
		}
	}
}

func TestEveryWrongSettingIsNamed(t *testing.T) {
	b, s := start(t)
	c := b.Cluster()
	for topic, set := range map[string]map[string]string{
		flights.Definitions(): {"cleanup.policy": "compact,delete", "min.compaction.lag.ms": "1000", "max.message.bytes": "1000000"},
		flights.Table():       {"cleanup.policy": "delete", "max.message.bytes": "8388608", "min.compaction.lag.ms": "3600000", "segment.bytes": "104857600"},
		flights.Decisions():   {"cleanup.policy": "compact", "max.message.bytes": "8388608", "retention.ms": "1000", "min.insync.replicas": "2"},
		flights.Nodes():       {"cleanup.policy": "compact", "segment.bytes": "1048576", "segment.ms": "1000"},
	} {
		parts := int32(1)
		if topic == flights.Nodes() {
			parts = 3
		}
		if err := c.CreateTopic(topic, parts, set); err != nil {
			t.Fatal(err)
		}
	}
	problems, err := admin(t, s).CheckTopics(t.Context(), flights, kafka.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		line := strings.TrimPrefix(p.Topic, "viewkeeper.flights-") + " " + p.Setting + "=" + p.Have + " from " + p.Source
		if p.Fatal {
			line += " fatal"
		}
		got = append(got, line)
	}
	want := []string{
		"definitions cleanup.policy=compact,delete from the topic fatal",
		"definitions max.message.bytes=1000000 from the topic",
		"definitions min.compaction.lag.ms=1000 from the topic fatal",
		"definitions segment.bytes=104857600 from default",
		"definitions segment.ms=604800000 from default",
		"table cleanup.policy=delete from the topic fatal",
		"table message.timestamp.type=CreateTime from default fatal",
		"table segment.bytes=104857600 from the topic",
		"table segment.ms=604800000 from default",
		"decisions cleanup.policy=compact from the topic fatal",
		"decisions min.insync.replicas=2 from the topic fatal",
		"nodes partitions=3 from the topic fatal",
		"nodes message.timestamp.type=CreateTime from default",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := len(kafka.FatalOnes(problems)); n != 7 {
		t.Errorf("%d fatal ones", n)
	}
}

func TestNothingCreatesATopic(t *testing.T) {
	b, s := start(t, kfake.AllowAutoTopicCreation())
	a := admin(t, s)
	if _, err := a.EndOffset(t.Context(), flights.Table()); !missing(err) {
		t.Errorf("end offset: %v", err)
	}
	if _, err := a.TopicID(t.Context(), flights.Table()); !missing(err) {
		t.Errorf("topic id: %v", err)
	}
	e := s.NewEmitter(flights)
	defer e.Close()
	_, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: "x"})
	var not *kafka.NotWrittenError
	if !errors.As(err, &not) || !missing(err) {
		t.Errorf("emit: %v", err)
	}
	for _, topic := range flights.All() {
		if info := b.Cluster().TopicInfo(topic); info != nil {
			t.Errorf("topic %s came about", topic)
		}
	}
}

func missing(err error) bool {
	var m *kafka.MissingTopicError
	return errors.As(err, &m) && kafka.Classify(err).Kind == kafka.KindMissing
}

func TestTopicIDsAndOffsets(t *testing.T) {
	b, s := start(t)
	a := admin(t, s)
	if _, err := a.CreateTopics(t.Context(), flights); err != nil {
		t.Fatal(err)
	}
	id, err := a.TopicID(t.Context(), flights.Definitions())
	if err != nil || len(id) != 22 {
		t.Fatalf("%q, %v", id, err)
	}
	e := s.NewEmitter(flights)
	defer e.Close()
	for i := range int64(3) {
		r, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "main.a", SQL: "CREATE VIEW a AS SELECT 1"})
		if err != nil || r != (kafka.Receipt{TopicID: id, Offset: i}) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if n, err := a.EndOffset(t.Context(), flights.Definitions()); n != 3 || err != nil {
		t.Errorf("end %d, %v", n, err)
	}
	if n, err := a.BeginOffset(t.Context(), flights.Definitions()); n != 0 || err != nil {
		t.Errorf("begin %d, %v", n, err)
	}
	if _, ok, err := a.Committed(t.Context(), string(flights.Group()), flights.Definitions()); ok || err != nil {
		t.Errorf("committed %v, %v", ok, err)
	}
	cluster, n, err := a.Cluster(t.Context())
	if err != nil || cluster == "" || n != 1 {
		t.Errorf("cluster %q, %d, %v", cluster, n, err)
	}

	guard := kafka.NewGuard(flights.Definitions(), "")
	tm, err := s.TopicManagerBuilder(guard)(s.Brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer tm.Close()
	if n, err := tm.GetOffset(flights.Definitions(), 0, -1); n != 3 || err != nil || guard.ID() != id {
		t.Errorf("%d, %v, %q", n, err, guard.ID())
	}
	if err := b.Cluster().DeleteTopic(flights.Definitions()); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Partitions(flights.Definitions()); !missing(err) {
		t.Errorf("partitions of a deleted topic: %v", err)
	}
	if _, err := a.CreateTopics(t.Context(), flights); err != nil {
		t.Fatal(err)
	}
	_, err = tm.GetOffset(flights.Definitions(), 0, -1)
	var changed *kafka.TopicChangedError
	if !errors.As(err, &changed) || !changed.Recreated() || !errors.As(guard.Err(), &changed) {
		t.Errorf("a topic made anew: %v, guard %v", err, guard.Err())
	}
}

func TestGuardNoticesALostEnd(t *testing.T) {
	g := kafka.NewGuard("t", "")
	if err := g.Compare(g.Before(), "A", 10); err != nil {
		t.Fatal(err)
	}
	g.Seen(14)
	err := g.Compare(g.Before(), "A", 12)
	var changed *kafka.TopicChangedError
	if !errors.As(err, &changed) || changed.Recreated() || changed.KnownEnd != 15 || changed.FoundEnd != 12 {
		t.Fatalf("%v", err)
	}
	before := g.Before()
	g.Seen(20) // while the answer is on its way
	if err := g.Compare(before, "A", 15); err != nil || g.Err() != nil {
		t.Errorf("the end came back: %v", err)
	}
	g.Accept("B")
	if err := g.Compare(g.Before(), "B", 0); err != nil {
		t.Error(err)
	}
}

func TestBoundedReturnsAtTheDeadlineAndClosesWhatComesLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release, closed := make(chan struct{}), make(chan int, 1)
	cancel()
	_, err := kafka.Bounded(ctx, func() (int, error) { <-release; return 7, nil }, func(n int) { closed <- n })
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(release)
	if n := <-closed; n != 7 {
		t.Error(n)
	}
}

func TestSupervise(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	err := kafka.Supervise(ctx, kafka.Supervision{Name: "it", FirstWait: time.Millisecond}, func(context.Context) error {
		switch runs++; runs {
		case 1:
			return errors.New("broken")
		case 2:
			panic("oops")
		case 3:
			return nil
		}
		cancel()
		return ctx.Err()
	})
	if err != nil || runs != 4 {
		t.Errorf("%v after %d runs", err, runs)
	}
	perm := &kafka.TooLargeError{Topic: "t", Size: 2, Limit: 1}
	err = kafka.Supervise(t.Context(), kafka.Supervision{Name: "it"}, func(context.Context) error { return perm })
	if err != error(perm) {
		t.Errorf("a permanent error gave %v", err)
	}
}

// What fails again and again is for Ended; a log that people read stays empty.
func TestSuperviseLeavesTheTellingToEnded(t *testing.T) {
	var log strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := 0, 0
	err := kafka.Supervise(ctx, kafka.Supervision{
		Name: "it", FirstWait: time.Millisecond, LongWait: time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Began: func() { began++ },
		Ended: func(error, kafka.Class, time.Duration) { ended++ },
	}, func(context.Context) error {
		if began == 9 {
			cancel()
		}
		return errors.New("denied")
	})
	if err != nil || began != 9 || ended != 8 || log.String() != "" {
		t.Errorf("%v, %d began, %d ended:\n%s", err, began, ended, log.String())
	}
}

// Who finds its node id taken waits long before it throws the other one out.
func TestSuperviseWaitsLongForATakenID(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var waits []time.Duration
	err := kafka.Supervise(ctx, kafka.Supervision{
		Name: "it", FirstWait: time.Microsecond, LongWait: time.Microsecond, TakenWait: time.Millisecond,
		Ended: func(_ error, class kafka.Class, wait time.Duration) {
			if waits = append(waits, wait); class.Kind != kafka.KindTaken || !strings.Contains(class.Reason, "--node-id") {
				t.Errorf("%+v", class)
			}
			if len(waits) == 6 {
				cancel()
			}
		},
	}, func(context.Context) error { return sarama.ErrFencedInstancedId })
	if err != nil || waits[0] < 700*time.Microsecond || waits[5] < 7*time.Millisecond || waits[5] > 10*time.Millisecond {
		t.Errorf("%v, %v", err, waits)
	}
}

func TestARunThatHangsIsAbandoned(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	err := kafka.Supervise(ctx, kafka.Supervision{Name: "it", StopDeadline: time.Millisecond}, func(context.Context) error {
		cancel()
		<-release
		return nil
	})
	var a *kafka.AbandonedError
	if !errors.As(err, &a) || a.Name != "it" {
		t.Errorf("%v", err)
	}
}

// A broker that takes connections and says nothing holds nobody up.
func TestAwakePassesOverASilentBroker(t *testing.T) {
	b, _ := start(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{silent.Addr().String(), b.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Awake().Brokers; !slices.Equal(got, []string{b.Addr()}) {
		t.Errorf("awake are %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), kafka.NetTimeout)
	defer cancel()
	a, err := s.OpenAdmin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	none, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{"127.0.0.1:1", "127.0.0.1:2"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := none.Awake().Brokers; len(got) != 2 {
		t.Errorf("with nobody awake: %v", got)
	}
}
