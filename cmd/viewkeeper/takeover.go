package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// toolOwner is who a fence, rows and a commit row are from that a command wrote.
const toolOwner = "viewkeeper-cli"

// takeOver writes rows, slots of known ids and then a commit row to the table, as an owner of a new
// epoch: first a fence, which gives the epoch and stops an owner that is alive. The
// rows are above any commit row until the last record makes them count, so a run
// that ends in the middle has changed nothing and can be repeated.
func (c *topicsClient) takeOver(ctx context.Context, commit *codec.Commit, rows []viewkeeper.Row, ids map[int]*codec.IDs) error {
	_, err := kafka.Bounded(ctx, func() (struct{}, error) { return struct{}{}, c.writeTable(commit, rows, ids) }, nil)
	return kafkaFailure(err)
}

func (c *topicsClient) writeTable(commit *codec.Commit, rows []viewkeeper.Row, ids map[int]*codec.IDs) (err error) {
	producer, err := sarama.NewSyncProducer(c.Brokers, c.Sarama())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, producer.Close()) }()
	write := func(r codec.Record) (int64, error) {
		key, value := codec.EncodeRecord(r)
		_, offset, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic: c.Table(), Partition: 0, Key: sarama.StringEncoder(key), Value: sarama.ByteEncoder(value),
		})
		return offset, err
	}
	now := time.Now().UTC()
	fence := &codec.Fence{Nonce: nonce(), EpochBase: commit.EpochBase, Owner: toolOwner, At: now}
	offset, err := write(fence)
	if err != nil {
		return err
	}
	epoch := fold.FenceEpoch(fence, offset)
	for _, row := range rows {
		row.Epoch = epoch
		if _, err := write(codec.Row{Row: row}); err != nil {
			return err
		}
	}
	for _, slot := range ids {
		slot.Epoch = epoch
		if _, err := write(slot); err != nil {
			return err
		}
	}
	last := commit.WithEpoch(epoch)
	last.Owner, last.At = toolOwner, now
	_, err = write(last)
	return err
}

func nonce() string {
	var b [16]byte
	// crypto/rand never fails; it ends the process instead.
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
