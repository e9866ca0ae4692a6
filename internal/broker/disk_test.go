//go:build linux

package broker_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"golang.org/x/sys/unix"
)

// TestAFullDisk: when the disk takes no more, a write is refused, what was acked before
// is there, also after kill -9, and writing goes on once there is room. The limit of a
// process's files stands for the disk's end: the broker sees both as a write that fails.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	addr, kill, pid := childWithID(t, dir)
	limit := func(size uint64) {
		t.Helper()
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	s := settings(t, addr)
	a, err := s.OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	if _, err := a.CreateTopics(t.Context(), topics); err != nil {
		t.Fatal(err)
	}
	limit(100_000)
	var acked []string
	write := func(text string) error {
		// A producer of its own each: what became of a failed write of one that retries is not known.
		p, err := sarama.NewSyncProducer(s.Brokers, s.Sarama())
		if err != nil {
			return err
		}
		defer func() { _ = p.Close() }()
		_, offset, err := p.SendMessage(&sarama.ProducerMessage{Topic: topics.Table(), Key: sarama.StringEncoder(text), Value: sarama.ByteEncoder(bytes.Repeat([]byte("x"), 7<<10))})
		if err == nil && offset != int64(len(acked)) {
			t.Fatalf("offset %d for the record after %d", offset, len(acked))
		}
		if err == nil {
			acked = append(acked, text)
		}
		return err
	}
	var full error
	for i := 0; full == nil && i < 100; i++ {
		full = write(fmt.Sprint("before ", i))
	}
	if full == nil || len(acked) < 10 {
		t.Fatalf("%d records were written into 100 kB: %v", len(acked), full)
	}
	if err := write("still full"); err == nil {
		t.Fatal("there is room again")
	}
	limit(unix.RLIM_INFINITY)
	if err := write("after"); err != nil {
		t.Fatalf("there is room and nothing is written: %v", err)
	}
	kill()
	addr, _, _ = childWithID(t, dir)
	c, err := sarama.NewConsumer([]string{addr}, settings(t, addr).Sarama())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	pc, err := c.ConsumePartition(topics.Table(), 0, sarama.OffsetOldest)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pc.Close() }()
	for i, want := range acked {
		if m := <-pc.Messages(); m == nil || string(m.Key) != want {
			t.Fatalf("record %d is %v, want %s", i, m, want)
		}
	}
}
