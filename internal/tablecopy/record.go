package tablecopy

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Format1 is the first format, and so far the only one.
const Format1 = 1

// Meta says what a copy is of.
type Meta struct {
	// Cluster and Topic are the ids of the Kafka cluster and of the table's topic.
	Cluster, Topic string
	// Offset is that of the last record that was taken in.
	Offset int64
	// Version is the catalog's there.
	Version viewkeeper.Version
	// At is when the copy was last known to be current, by the clock of its node.
	At time.Time
}

// Record is a record of the table. A tombstone has a nil Value.
type Record struct {
	Offset int64
	Key    string
	Value  []byte
}

// wireMeta is the meta record on disk, see FORMAT.md.
type wireMeta struct {
	Format  int                `json:"format"`
	Codec   int                `json:"codec"`
	Cluster string             `json:"cluster"`
	Topic   string             `json:"topic"`
	Offset  int64              `json:"offset"`
	Version viewkeeper.Version `json:"version"`
	At      time.Time          `json:"at"`
	Count   int                `json:"count"`
	Sum     string             `json:"sum"`
}

const (
	metaKey      = "m"
	recordPrefix = 'r'
	sumSize      = 8
)

func encodeMeta(m Meta, count int, sum uint64) ([]byte, error) {
	raw, err := json.Marshal(wireMeta{
		Format1, codec.Format, m.Cluster, m.Topic, m.Offset, m.Version, m.At.UTC(), count, strconv.FormatUint(sum, 10),
	})
	if err != nil {
		return nil, fmt.Errorf("writing what a copy of the table is of: %w", err)
	}
	return appendSum(raw), nil
}

func appendSum(raw []byte) []byte { return binary.BigEndian.AppendUint64(raw, xxhash.Sum64(raw)) }

// decodeMeta reads a meta record; its errors say why the copy can't be used.
func decodeMeta(raw []byte) (m Meta, count int, sum uint64, err error) {
	if len(raw) < sumSize {
		return m, 0, 0, errors.New("it does not say what it is a copy of")
	}
	body := raw[:len(raw)-sumSize]
	if xxhash.Sum64(body) != binary.BigEndian.Uint64(raw[len(body):]) {
		return m, 0, 0, errors.New("it is damaged: what it says of itself has another checksum")
	}
	var w wireMeta
	if err := json.Unmarshal(body, &w); err != nil {
		return m, 0, 0, fmt.Errorf("it is damaged: %w", err)
	}
	if w.Format != Format1 {
		return m, 0, 0, fmt.Errorf("it is of format %d, and this program reads format %d", w.Format, Format1)
	}
	if w.Codec != codec.Format {
		return m, 0, 0, fmt.Errorf("it was written by a program that reads the table's format %d, and this one reads format %d", w.Codec, codec.Format)
	}
	if sum, err = strconv.ParseUint(w.Sum, 10, 64); err != nil {
		return m, 0, 0, fmt.Errorf("it is damaged: %w", err)
	}
	return Meta{w.Cluster, w.Topic, w.Offset, w.Version, w.At}, w.Count, sum, nil
}

func recordKey(offset int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{recordPrefix}, uint64(offset))
}

// encodeRecord gives the value of a record's key, and its checksum.
func encodeRecord(r Record) (value []byte, sum uint64) {
	value = make([]byte, sumSize, sumSize+5+len(r.Key)+len(r.Value))
	kind := byte(1)
	if r.Value == nil {
		kind = 0
	}
	value = append(value, kind)
	value = binary.BigEndian.AppendUint32(value, uint32(len(r.Key)))
	value = append(append(value, r.Key...), r.Value...)
	sum = checksum(r.Offset, value[sumSize:])
	binary.BigEndian.PutUint64(value, sum)
	return value, sum
}

// decodeRecord reads what encodeRecord wrote. It keeps nothing of its arguments.
func decodeRecord(key, value []byte) (r Record, sum uint64, err error) {
	if len(key) != 1+8 || key[0] != recordPrefix {
		return r, 0, fmt.Errorf("it is damaged: no copy has the key %q", key)
	}
	r.Offset = int64(binary.BigEndian.Uint64(key[1:]))
	damaged := fmt.Errorf("it is damaged: the record at offset %d has another checksum", r.Offset)
	if len(value) < sumSize+5 {
		return r, 0, damaged
	}
	body := value[sumSize:]
	sum = checksum(r.Offset, body)
	if sum != binary.BigEndian.Uint64(value) {
		return r, 0, damaged
	}
	kind, length, body := body[0], int(binary.BigEndian.Uint32(body[1:])), body[5:]
	if length > len(body) || kind > 1 || kind == 0 && length != len(body) {
		return r, 0, fmt.Errorf("it is damaged: the record at offset %d is not well formed", r.Offset)
	}
	r.Key = string(body[:length])
	if kind == 1 {
		r.Value = append([]byte{}, body[length:]...)
	}
	return r, sum, nil
}

func checksum(offset int64, body []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(binary.BigEndian.AppendUint64(nil, uint64(offset)))
	_, _ = d.Write(body)
	return d.Sum64()
}
