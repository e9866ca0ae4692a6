package broker_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/freeport"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// childDir, in the environment, makes the test binary be a broker on that
// directory until it is killed.
const childDir = "BROKER_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		b, err := broker.Start(context.Background(), dir, "127.0.0.1:0")
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(b.Addr())
		select {}
	}
	os.Exit(m.Run())
}

func child(t *testing.T, dir string) (addr string, kill func()) {
	t.Helper()
	addr, kill, _ = childWithID(t, dir)
	return addr, kill
}

func childWithID(t *testing.T, dir string) (addr string, kill func(), pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return strings.TrimSpace(line), kill, cmd.Process.Pid
}

func settings(t *testing.T, addr string) kafka.Settings {
	t.Helper()
	s, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var topics = kafka.Topics{Catalog: "test"}

// Acked records, topic ids, settings and committed offsets outlive kill -9.
func TestEverythingOutlivesKill(t *testing.T) {
	dir := t.TempDir()
	addr, kill := child(t, dir)
	s := settings(t, addr)
	a, err := s.OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.CreateTopics(t.Context(), topics); err != nil {
		t.Fatal(err)
	}
	id, err := a.TopicID(t.Context(), topics.Definitions())
	if err != nil {
		t.Fatal(err)
	}
	cluster, _, err := a.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := s.NewEmitter(topics)
	for i := range 50 {
		if r, err := e.Emit(t.Context(), viewkeeper.Submission{Key: fmt.Sprint(i % 7), SQL: fmt.Sprint("statement ", i)}); err != nil || r.Offset != int64(i) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	commit(t, s, 17)
	kill()
	_, _ = e.Close(), a.Close()

	addr, _ = child(t, dir)
	s = settings(t, addr)
	if a, err = s.OpenAdmin(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if again, err := a.TopicID(t.Context(), topics.Definitions()); again != id || err != nil {
		t.Errorf("topic id %s, was %s, %v", again, id, err)
	}
	if again, _, err := a.Cluster(t.Context()); again != cluster || err != nil {
		t.Errorf("cluster id %s, was %s, %v", again, cluster, err)
	}
	if n, err := a.EndOffset(t.Context(), topics.Definitions()); n != 50 || err != nil {
		t.Errorf("end %d, %v", n, err)
	}
	if problems, err := a.CheckTopics(t.Context(), topics, kafka.CheckOptions{}); len(problems) != 0 || err != nil {
		t.Errorf("%v, %v", problems, err)
	}
	if n, ok, err := a.Committed(t.Context(), string(topics.Group()), topics.Definitions()); n != 17 || !ok || err != nil {
		t.Errorf("committed %d, %v, %v", n, ok, err)
	}
}

func commit(t *testing.T, s kafka.Settings, offset int64) {
	t.Helper()
	c, err := sarama.NewClient(s.Brokers, s.Sarama())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	coordinator, err := c.Coordinator(string(topics.Group()))
	if err != nil {
		t.Fatal(err)
	}
	req := &sarama.OffsetCommitRequest{Version: 2, ConsumerGroup: string(topics.Group()), ConsumerGroupGeneration: -1, RetentionTime: -1}
	req.AddBlock(topics.Definitions(), 0, offset, 0, "")
	res, err := coordinator.CommitOffset(req)
	if err != nil || res.Errors[topics.Definitions()][0] != sarama.ErrNoError {
		t.Fatalf("%+v, %v", res, err)
	}
}

func TestADirectoryHasOneBroker(t *testing.T) {
	dir := t.TempDir()
	b, err := broker.Start(t.Context(), dir, freeport.Addr(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Start(t.Context(), dir, "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second one: %v", err)
	}
	addr := b.Addr()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	// The same address and directory again, at once.
	if b, err = broker.Start(t.Context(), dir, addr); err != nil || b.Addr() != addr {
		t.Fatalf("%v", err)
	}
	if err := b.Close(); err != nil || b.Close() != nil {
		t.Error(err)
	}
	for _, addr := range []string{"nonsense", "0.0.0.0:0"} {
		if _, err := broker.Start(t.Context(), t.TempDir(), addr); err == nil {
			t.Errorf("address %q is accepted", addr)
		}
	}
}

// goka's whole path: emit, process with a group, table, view. The producer is
// idempotent, the topics are the project's own.
func TestGokaWorksOnIt(t *testing.T) {
	b, err := broker.Start(t.Context(), t.TempDir(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s := settings(t, b.Addr())
	a, err := s.OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.CreateTopics(t.Context(), topics); err != nil {
		t.Fatal(err)
	}
	mem := storage.MemoryBuilder()
	graph := goka.DefineGroup(topics.Group(),
		goka.Input(goka.Stream(topics.Definitions()), raw{}, func(ctx goka.Context, msg any) {
			if msg == nil {
				ctx.SetValue([]byte("dropped"))
				return
			}
			ctx.SetValue(msg)
		}), goka.Persist(raw{}))
	p, err := goka.NewProcessor(s.Brokers, graph, append(s.ProcessorOptions("", nil, nil), goka.WithStorageBuilder(mem))...)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 10)
	var clients kafka.ViewClients
	v, err := goka.NewView(s.Brokers, goka.GroupTable(topics.Group()), raw{}, append(s.ViewOptions(&clients, nil, nil),
		goka.WithViewStorageBuilder(mem),
		goka.WithViewCallback(func(_ goka.UpdateContext, _ storage.Storage, key string, value []byte) error {
			seen <- key + "=" + string(value)
			return nil
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- p.Run(ctx) }()
	go func() { ended <- v.Run(ctx) }()

	e := s.NewEmitter(topics)
	defer e.Close()
	// One after the other, so that each is a batch of its own: compaction looks at
	// batches.
	for _, step := range []struct {
		sub  viewkeeper.Submission
		want string
	}{
		{viewkeeper.Submission{Key: "a", SQL: "1"}, "a=1"},
		{viewkeeper.Submission{Key: "a", Tombstone: true}, "a=dropped"},
		{viewkeeper.Submission{Key: "b", SQL: "2"}, "b=2"},
	} {
		if _, err := e.Emit(t.Context(), step.sub); err != nil {
			t.Fatal(err)
		}
		if got := <-seen; got != step.want {
			t.Errorf("saw %s, want %s", got, step.want)
		}
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := clients.Close(); err != nil {
		t.Error(err)
	}

	// Compaction leaves the last record of each key. Where it takes the first record,
	// the beginning moves here, which it does not on Apache Kafka.
	b.Cluster().Compact()
	if n, err := a.BeginOffset(t.Context(), topics.Table()); n != 1 || err != nil {
		t.Errorf("begin %d, %v", n, err)
	}
	c, err := s.ConsumerBuilder()(s.Brokers, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pc, err := c.ConsumePartition(topics.Table(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	var offsets []int64
	for m := range pc.Messages() {
		offsets = append(offsets, m.Offset)
		if m.Offset == 2 {
			break
		}
	}
	if fmt.Sprint(offsets) != "[1 2]" {
		t.Errorf("after compaction the table has %v", offsets)
	}
}

type raw struct{}

func (raw) Encode(v any) ([]byte, error) { b, _ := v.([]byte); return b, nil }
func (raw) Decode(b []byte) (any, error) { return b, nil }
