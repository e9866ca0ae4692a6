package processor

import (
	"errors"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// sink writes records and waits for all acks. It is not used again after an error.
type sink interface {
	// send writes the messages in one flight, and sets the offset of each; one that
	// the broker did not tell is kafka.OffsetUnknown. An error means that it is not known
	// which of them are written.
	send(messages []*sarama.ProducerMessage) error
	close() error
}

// openSink opens the owner's producer.
func openSink(s kafka.Settings) (sink, error) {
	f, err := s.OpenFlights()
	if err != nil {
		return nil, err
	}
	return flightSink{f}, nil
}

type flightSink struct{ *kafka.Flights }

func (s flightSink) send(messages []*sarama.ProducerMessage) error { return s.Send(messages) }
func (s flightSink) close() error                                  { return s.Close() }

func tableMessage(topic string, r codec.Record) *sarama.ProducerMessage {
	key, value := codec.EncodeRecord(r)
	m := &sarama.ProducerMessage{Topic: topic, Partition: 0, Key: sarama.StringEncoder(key)}
	if value != nil { // an empty encoder would make an empty value of none
		m.Value = sarama.ByteEncoder(value)
	}
	m.Headers = recordHeaders(codec.TableHeaders(r))
	return m
}

func recordHeaders(headers []codec.Header) (out []sarama.RecordHeader) {
	for _, h := range headers {
		out = append(out, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	return out
}

func topicMessage(topic string, m codec.Message) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(m.Key), Value: sarama.ByteEncoder(m.Value), Headers: recordHeaders(m.Headers)}
}

// errGokaWrites is what goka gets when it wants to write.
var errGokaWrites = errors.New("nothing is written through goka; the owner's writer does it")

// noProducer is the producer that goka is given.
type noProducer struct{}

// Emit refuses.
func (noProducer) Emit(topic, key string, value []byte) *goka.Promise {
	promise, finish := goka.NewPromiseWithFinisher()
	finish(nil, errGokaWrites)
	return promise
}

// EmitWithHeaders refuses.
func (p noProducer) EmitWithHeaders(topic, key string, value []byte, _ goka.Headers) *goka.Promise {
	return p.Emit(topic, key, value)
}

// Close does nothing.
func (noProducer) Close() error { return nil }
