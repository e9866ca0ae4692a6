// Package codec turns bytes into the vocabulary and back: the records of the
// table, the decisions, and the statements as they lie in Kafka. FORMAT.md beside
// it has every field in tables.
//
// Decoding is total. Any key and any value gives a record: what can't be
// understood is an [Unknown] with its bytes, and no input makes it fail or panic,
// since a record that stops a follower stops it at every start.
//
// Nothing that a newer program wrote is lost by an older one that writes it
// again: the format number and every field that is not known here travel with the
// record (Format and Extra) and come out as they went in.
package codec

// Format is the version of the format that this program writes. A program that
// adds a field that an older one must not lose sight of, or changes the meaning
// of one, raises it; each step gets a named constant.
const Format = Format1

// The steps of the format.
const (
	// Format1 is the first.
	Format1 = 1
)

// Raw is the codec that goka is given: bytes in, bytes out. goka stops a
// processor for ever on the record that a codec fails on, so the real decoding is
// done in the callbacks, with [DecodeRecord] and [DecodeSubmission], which can't
// fail.
type Raw struct{}

// Encode gives back the bytes of a []byte; of anything else it makes nil, which
// no caller of this project passes.
func (Raw) Encode(value any) ([]byte, error) {
	b, _ := value.([]byte)
	return b, nil
}

// Decode gives back data.
func (Raw) Decode(data []byte) (any, error) { return data, nil }
