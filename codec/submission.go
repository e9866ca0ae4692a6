package codec

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/viewkeeper/viewkeeper"
)

// The headers of a statement's record.
const (
	HeaderID            = "id"
	HeaderAuthor        = "author"
	HeaderExpectVersion = "expect-version"
	HeaderReason        = "reason"
	HeaderTraceparent   = "traceparent"
)

// MaxID is the longest statement id, in bytes.
const MaxID = 128

// The longest author and reason, in bytes: they go into every decision, refusals
// included, and must leave room for the rest in its record.
const (
	MaxAuthor = 1 << 10
	MaxReason = 16 << 10
)

// Header is one header of a Kafka record.
type Header struct {
	Key   string
	Value []byte
}

// Message is a Kafka record, as any client has it.
type Message struct {
	Key     []byte
	Value   []byte // nil is null
	Headers []Header
	// Offset and Time are the broker's; they are not set on what is to be written.
	Offset int64
	Time   time.Time
}

// DecodeSubmission reads a record of the definitions topic, whose Kafka topic id
// is given. It never fails: what is wrong with the headers is said in HeaderError,
// and the judge refuses the statement for it. Such a statement is known by the id
// that it would have without an id header.
func DecodeSubmission(topicID string, m Message) viewkeeper.Submission {
	s := viewkeeper.Submission{
		Key:       string(m.Key),
		SQL:       string(m.Value),
		Tombstone: len(m.Value) == 0,
		ID:        DefaultID(topicID, m.Offset),
		Offset:    m.Offset,
		At:        jsonTime(m.Time),
	}
	fail := func(format string, args ...any) {
		if s.HeaderError == "" {
			s.HeaderError = fmt.Sprintf(format, args...)
		}
	}
	seen := map[string]bool{}
	for _, h := range m.Headers {
		value := string(h.Value)
		switch h.Key {
		case HeaderID, HeaderAuthor, HeaderReason, HeaderExpectVersion:
		case HeaderTraceparent:
			if isTraceparent(value) { // else as if it were not there, as W3C says
				s.Traceparent = value
			}
			continue
		default:
			continue
		}
		if seen[h.Key] {
			fail("the header %s is given twice; give it once", h.Key)
			continue
		}
		seen[h.Key] = true
		if !utf8.ValidString(value) {
			fail("the header %s is not UTF-8 text", h.Key)
			continue
		}
		switch h.Key {
		case HeaderID:
			if err := CheckID(value); err != nil {
				fail("the header id: %v", err)
				continue
			}
			s.ID = value
		case HeaderAuthor:
			if len(value) > MaxAuthor {
				fail("the header author has %d bytes, the limit is %d; say who it is, and put the rest into reason", len(value), MaxAuthor)
				value = clip(value)
			}
			s.Author = value
		case HeaderReason:
			if len(value) > MaxReason {
				fail("the header reason has %d bytes, the limit is %d; say it shorter", len(value), MaxReason)
				value = clip(value)
			}
			s.Reason = value
		case HeaderExpectVersion:
			v, err := viewkeeper.ParseVersion(value)
			if err != nil {
				fail("the header expect-version is %q; it must be a whole number from 0, 0 meaning that the definition must not exist", clip(value))
				continue
			}
			s.ExpectVersion = &v
		}
	}
	return s
}

// EncodeSubmission gives the record that DecodeSubmission reads back. An id that
// CheckID refuses is left out, which is how a default id gets out of the way.
func EncodeSubmission(s viewkeeper.Submission) Message {
	m := Message{Key: []byte(s.Key)}
	if !s.Tombstone {
		m.Value = []byte(s.SQL)
	}
	add := func(key, value string) {
		if value != "" {
			m.Headers = append(m.Headers, Header{key, []byte(value)})
		}
	}
	if CheckID(s.ID) == nil {
		add(HeaderID, s.ID)
	}
	add(HeaderAuthor, s.Author)
	if s.ExpectVersion != nil {
		add(HeaderExpectVersion, s.ExpectVersion.String())
	}
	add(HeaderReason, s.Reason)
	add(HeaderTraceparent, s.Traceparent)
	return m
}

// DefaultID is the id of a statement that came without one.
func DefaultID(topicID string, offset int64) string { return fmt.Sprintf("%s:%d", topicID, offset) }

// IsDefaultID reports whether id was made by DefaultID. No producer can give such
// an id, so it can't be used twice and need not be remembered.
func IsDefaultID(id string) bool { return strings.Contains(id, ":") }

// CheckID says what is wrong with an id that a producer gives: any text of 1 to
// 128 bytes without ':'.
func CheckID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("a statement id must not be empty; leave the header out to get one")
	case len(id) > MaxID:
		return fmt.Errorf("a statement id has at most %d bytes, this one has %d", MaxID, len(id))
	case strings.Contains(id, ":"):
		return fmt.Errorf("the statement id %q has a ':', which only the ids of viewkeeper itself have", clip(id))
	case !utf8.ValidString(id):
		return fmt.Errorf("a statement id must be UTF-8 text")
	}
	return nil
}

// isTraceparent checks the form of W3C Trace Context, version 00.
func isTraceparent(s string) bool {
	if len(s) < 55 || len(s) > MaxID || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	for i, c := range []byte(s[:55]) {
		if i != 2 && i != 35 && i != 52 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// clip shortens text for a message.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
