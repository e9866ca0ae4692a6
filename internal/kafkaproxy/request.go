package kafkaproxy

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Action is what becomes of a request.
type Action int

const (
	// Pass forwards it.
	Pass Action = iota
	// Hold keeps it, and what follows on its connection, until Heal; then it is
	// forwarded, also when the client has gone.
	Hold
	// Refuse closes the connection instead of forwarding it.
	Refuse
	// LoseAnswer forwards it, and closes the connection when the broker has answered.
	LoseAnswer
	// HoldAnswer forwards it, and keeps its answer until Heal.
	HoldAnswer
)

// Request is one request of a client.
type Request struct {
	// Key is the request's kind, Version that of its format.
	Key, Version int16
	// Client is what the client calls itself.
	Client string

	correlation int32
	body        []byte
	proxy       *Proxy
}

// Record is a record that a client produces.
type Record struct {
	Topic      string
	Key, Value []byte
}

// String is the request for a log: its kind, its topics.
func (r Request) String() string {
	return fmt.Sprintf("%s v%d of %s %v", kmsg.NameForKey(r.Key), r.Version, r.Client, r.Topics())
}

// request reads a request's header. One that it can't read has key -1, and passes.
func (p *Proxy) request(frame []byte) Request {
	r := Request{Key: -1, proxy: p}
	if len(frame) < 10 {
		return r
	}
	n := max(0, int(int16(binary.BigEndian.Uint16(frame[8:]))))
	if len(frame) < 10+n {
		return r
	}
	r.Key = int16(binary.BigEndian.Uint16(frame))
	r.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	r.correlation = int32(binary.BigEndian.Uint32(frame[4:]))
	r.Client, r.body = string(frame[10:10+n]), frame[10+n:]
	return r
}

// decode gives the request's content, nil when it is not known.
func (r Request) decode() kmsg.Request {
	req := kmsg.RequestForKey(r.Key)
	if req == nil || r.Version > req.MaxVersion() {
		return nil
	}
	req.SetVersion(r.Version)
	body := r.body
	if req.IsFlexible() {
		body = skipTags(body)
	}
	if req.ReadFrom(body) != nil {
		return nil
	}
	return req
}

// answered says whether the broker answers it: a produce request without acks is not.
func (r Request) answered() bool {
	if r.Key != int16(kmsg.Produce) {
		return r.Key >= 0
	}
	p, ok := r.decode().(*kmsg.ProduceRequest)
	return !ok || p.Acks != 0
}

// Topics names the topics that a request is about, in its order, each once; for the
// requests that a client of topics makes. A topic that is named by an id that no
// Metadata answer has told is left out.
func (r Request) Topics() []string {
	var names []string
	add := func(name string, id [16]byte) {
		if name == "" {
			name = r.proxy.topicName(id)
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	none := [16]byte{}
	switch q := r.decode().(type) {
	case *kmsg.ProduceRequest:
		for _, t := range q.Topics {
			add(t.Topic, t.TopicID)
		}
	case *kmsg.FetchRequest:
		for _, t := range q.Topics {
			add(t.Topic, t.TopicID)
		}
	case *kmsg.MetadataRequest:
		for _, t := range q.Topics {
			if t.Topic != nil {
				add(*t.Topic, t.TopicID)
			} else {
				add("", t.TopicID)
			}
		}
	case *kmsg.ListOffsetsRequest:
		for _, t := range q.Topics {
			add(t.Topic, none)
		}
	case *kmsg.OffsetCommitRequest:
		for _, t := range q.Topics {
			add(t.Topic, t.TopicID)
		}
	case *kmsg.OffsetFetchRequest:
		for _, t := range q.Topics {
			add(t.Topic, none)
		}
		for _, g := range q.Groups {
			for _, t := range g.Topics {
				add(t.Topic, t.TopicID)
			}
		}
	case *kmsg.CreateTopicsRequest:
		for _, t := range q.Topics {
			add(t.Topic, none)
		}
	case *kmsg.DeleteTopicsRequest:
		for _, name := range q.TopicNames {
			add(name, none)
		}
		for _, t := range q.Topics {
			if t.Topic != nil {
				add(*t.Topic, t.TopicID)
			} else {
				add("", t.TopicID)
			}
		}
	case *kmsg.DescribeConfigsRequest:
		for _, t := range q.Resources {
			if t.ResourceType == kmsg.ConfigResourceTypeTopic {
				add(t.ResourceName, none)
			}
		}
	}
	return names
}

// Records gives the records of a produce request, in its order; none of another, or
// when they can't be read.
func (r Request) Records() []Record {
	q, ok := r.decode().(*kmsg.ProduceRequest)
	if !ok {
		return nil
	}
	var out []Record
	for _, t := range q.Topics {
		name := t.Topic
		if name == "" {
			name = r.proxy.topicName(t.TopicID)
		}
		for _, p := range t.Partitions {
			for _, rec := range batchRecords(p.Records) {
				out = append(out, Record{name, rec.Key, rec.Value})
			}
		}
	}
	return out
}

// batchRecords reads record batches of format 2.
func batchRecords(raw []byte) []kmsg.Record {
	const lengthAt, headSize = 8, 12
	var out []kmsg.Record
	for len(raw) >= headSize {
		n := headSize + int(int32(binary.BigEndian.Uint32(raw[lengthAt:])))
		var b kmsg.RecordBatch
		if n < headSize || n > len(raw) || b.ReadFrom(raw[:n]) != nil || b.Magic != 2 {
			return out
		}
		raw = raw[n:]
		text := b.Records
		if codec := b.Attributes & 7; codec != 0 {
			var err error
			if text, err = kgo.DefaultDecompressor().Decompress(text, kgo.CompressionCodecType(codec)); err != nil {
				return out
			}
		}
		for range b.NumRecords {
			size, n := binary.Varint(text)
			if n <= 0 || size < 0 || int(size) > len(text)-n {
				return out
			}
			var rec kmsg.Record
			if rec.ReadFrom(text[:n+int(size)]) != nil {
				return out
			}
			out = append(out, rec)
			text = text[n+int(size):]
		}
	}
	return out
}

// skipTags skips the tagged fields of a header.
func skipTags(b []byte) []byte {
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b = nil
			return 0
		}
		b = b[n:]
		return v
	}
	for range next() {
		next()
		size := next()
		if size > uint64(len(b)) {
			return nil
		}
		b = b[size:]
	}
	return b
}
