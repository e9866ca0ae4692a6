package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// p3 measures how long a node takes from its start as a process until /readyz says that
// it is: with nothing, with its copy of the table, and with nothing after a long
// history. Bare DuckDB, in this process, on one connection and in one transaction,
// makes the same views in turn with the cold starts.
func p3(ctx context.Context, env *Env) ([]Figure, error) {
	c, err := env.Loaded(ctx, env.N)
	if err != nil {
		return nil, err
	}
	owner, err := c.Serve(ctx, "owner", "owner")
	if err != nil {
		return nil, err
	}
	defer owner.Stop()
	long, err := c.compacted(ctx, 1_000_000)
	if err != nil {
		return nil, fmt.Errorf("a table as it is after a long history: %w", err)
	}
	var bare, cold, copied, after durations
	var coldCPU, copiedCPU durations
	for i := range env.pick(1, 3) {
		took, _, err := bareViews(env.N)
		if err != nil {
			return nil, err
		}
		bare = append(bare, took)
		name := fmt.Sprint("start-", i)
		for again := range 1 + env.pick(2, 3) {
			took, used, err := c.start(ctx, name)
			if err != nil {
				return nil, err
			}
			if again == 0 {
				cold, coldCPU = append(cold, took), append(coldCPU, used)
			} else {
				copied, copiedCPU = append(copied, took), append(copiedCPU, used)
			}
		}
		if took, _, err = long.start(ctx, name); err != nil {
			return nil, err
		}
		after = append(after, took)
	}
	note := fmt.Sprintf("processor time of the process and its engines until ready, medians: %.0f ms with nothing, %.0f ms with the copy", coldCPU.at(.5), copiedCPU.at(.5))
	return []Figure{
		{ID: "P3", What: "a node's start to ready, with nothing", Got: cold.at(.5), Baseline: bare.at(.5), Unit: "ms", Against: "bare DuckDB making the views",
			Limit: 1.2 * bare.at(.5), Target: "≤ 1.2 ×", Note: note},
		{ID: "P3", What: "with its copy of the table", Got: copied.at(.5), Unit: "ms", Limit: 600, Target: "≤ 600 ms"},
		{ID: "P3", What: "with nothing, after 1,000,000 statements", Got: after.at(.5), Baseline: cold.at(.5), Unit: "ms", Against: "a short history",
			Limit: 1.3 * cold.at(.5), Target: "≤ 1.3 ×",
			Note: "the table as compaction leaves it: the definitions' rows, and the ids of the last 262,144 statements, whose rows are written over again and again"},
	}, nil
}

// start runs a node until it is ready, and gives the time and the processor time.
func (c *Catalog) start(ctx context.Context, name string) (took, used time.Duration, err error) {
	p, err := c.Serve(ctx, name, "node")
	if err != nil {
		return 0, 0, err
	}
	took = time.Since(p.Began)
	used = p.processorTime()
	p.Stop()
	return took, used, nil
}

// bareViews makes the views in a bare DuckDB, and gives the time and how many MB this
// process has grown by.
func bareViews(n int) (took time.Duration, grown float64, err error) {
	b, err := OpenBare(4 << 30)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	base, statements := registrytest.Large(n)
	if err := b.Exec(base); err != nil {
		return 0, 0, err
	}
	before, err := ownMemory()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := b.Exec("BEGIN"); err != nil {
		return 0, 0, err
	}
	for _, s := range statements {
		if err := b.Exec(s); err != nil {
			return 0, 0, err
		}
	}
	if err := b.Exec("COMMIT"); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	after, err := ownMemory()
	return took, after - before, err
}

// compacted makes another catalog with the same definitions, whose table is what
// compaction leaves of one in which so many statements were decided: a row for each
// definition, the full ring of ids, a fence, the commit row.
func (c *Catalog) compacted(ctx context.Context, statements int) (*Catalog, error) {
	settings, err := c.env.kafka()
	if err != nil {
		return nil, err
	}
	to, err := c.env.NewCatalog(ctx, "")
	if err != nil {
		return nil, err
	}
	rows := map[string]codec.Row{}
	var commit *codec.Commit
	enough := errors.New("that is all")
	quiet, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	err = settings.Tail(quiet, c.Topics.Table(), sarama.OffsetOldest, func(m *sarama.ConsumerMessage) error {
		switch r := codec.DecodeRecord(string(m.Key), m.Value).(type) {
		case codec.Row:
			rows[string(m.Key)] = r
		case *codec.Commit:
			commit = r
		case *codec.Heartbeat: // the owner is idle: from its second one on all is read
			if commit != nil && r.Version == commit.Version && len(rows) >= c.env.N {
				return enough
			}
		}
		return nil
	})
	if !errors.Is(err, enough) {
		return nil, fmt.Errorf("the table was not read to its end: %w", err)
	}
	producer, err := sarama.NewSyncProducer(strings.Split(c.env.Brokers, ","), settings.Sarama())
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	var batch []*sarama.ProducerMessage
	put := func(r codec.Record) {
		key, value := codec.EncodeRecord(r)
		batch = append(batch, &sarama.ProducerMessage{Topic: to.Topics.Table(), Key: sarama.StringEncoder(key), Value: sarama.ByteEncoder(value)})
	}
	send := func() error {
		err := producer.SendMessages(batch)
		batch = nil
		return err
	}
	fence := &codec.Fence{Nonce: "0000000000000001", Owner: "bench", At: time.Now()}
	put(fence)
	if err := send(); err != nil {
		return nil, err
	}
	epoch := fold.FenceEpoch(fence, 0)
	last := commit.Version + viewkeeper.Version(statements)
	for start := codec.SlotStart(last) - codec.SlotSpan*(codec.Slots-1); start <= last; start += codec.SlotSpan {
		ids := &codec.IDs{Slot: codec.Slot(start), Epoch: epoch, Version: min(start+codec.SlotSpan-1, last)}
		for v := start; v <= ids.Version; v++ {
			id := fmt.Sprintf("producer-%03d:%016x", v%100, uint64(v))
			ids.IDs = append(ids.IDs, codec.ID{ID: id, Text: codec.HashText(viewkeeper.Submission{SQL: id}), Version: v})
		}
		if put(ids); len(batch) >= 50 {
			if err := send(); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range rows {
		r.Epoch = epoch
		if put(r); len(batch) >= 1000 {
			if err := send(); err != nil {
				return nil, err
			}
		}
	}
	end := &codec.Commit{Version: last, Epoch: epoch, Owner: "bench", At: time.Now(), Engine: commit.Engine, BaseDigest: commit.BaseDigest, DefinitionsTopic: commit.DefinitionsTopic}
	put(end)
	put(&codec.Heartbeat{Version: last, Epoch: epoch, Owner: "bench", At: time.Now(), Engine: commit.Engine, BaseDigest: commit.BaseDigest})
	return to, send()
}
