package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sentence gives an error's text on one line. goka makes lists of lists of them, each
// on lines of its own.
func Sentence(err error) string {
	if err == nil {
		return ""
	}
	words := strings.Fields(err.Error())
	out := words[:0]
	for i := 0; i < len(words); i++ {
		if i+2 < len(words) && strings.HasPrefix(words[i+1], "error") && words[i+2] == "occurred:" {
			i += 2 // 1 error occurred:
			continue
		}
		if words[i] == "*" {
			if n := len(out); n > 0 && !strings.HasSuffix(out[n-1], ":") && !strings.HasSuffix(out[n-1], ";") {
				out[n-1] += ";"
			}
			continue
		}
		out = append(out, words[i])
	}
	return strings.Join(out, " ")
}

// ErrEmitterClosed is returned when an emitter is used after Close.
var ErrEmitterClosed = errors.New("the emitter is closed")

// ErrNodeIDTaken is returned when another process works under this one's node id.
var ErrNodeIDTaken = errors.New("another process has this one's node id; give each process a --node-id of its own")

// MissingTopicError is returned when a topic is not there. Topics come about
// through `viewkeeper topics create` only.
type MissingTopicError struct{ Topic string }

// Error names the topic and the way out.
func (e *MissingTopicError) Error() string {
	return fmt.Sprintf("the topic %s is not there; create the catalog's topics with viewkeeper topics create; if a topic was lost, viewkeeper restore puts the catalog back", e.Topic)
}

// TopicChangedError is returned when a topic is not the one that was known:
// another id (deleted and created again), or an end before one already seen
// (emptied, or an unclean leader).
type TopicChangedError struct {
	Topic string
	// Known and Found are topic ids; they are equal when only the end shrank.
	Known, Found string
	// KnownEnd and FoundEnd are end offsets.
	KnownEnd, FoundEnd int64
}

// Recreated reports whether it is another topic under the same name.
func (e *TopicChangedError) Recreated() bool { return e.Known != e.Found }

// Error says what changed.
func (e *TopicChangedError) Error() string {
	if e.Recreated() {
		return fmt.Sprintf("the topic %s was made anew: its id is %s and was %s; %s", e.Topic, e.Found, e.Known, e.wayOut())
	}
	return fmt.Sprintf("the topic %s lost its end: it ends at offset %d and had reached %d; look at the brokers' log for an unclean leader election",
		e.Topic, e.FoundEnd, e.KnownEnd)
}

// wayOut depends on the topic: the table is the truth and has to be put back, while
// the definitions topic is only what comes in and can begin again.
func (e *TopicChangedError) wayOut() string {
	if strings.HasSuffix(e.Topic, tableSuffix) {
		return "put the catalog back into it with viewkeeper restore"
	}
	return "if that is meant, accept it with viewkeeper topics adopt"
}

// TooLargeError is returned when a record is over a limit. Nothing was written.
type TooLargeError struct {
	Topic string
	// Size and Limit are in bytes; Limit is 0 when only the broker knows it.
	Size, Limit int
}

// Error says by how much.
func (e *TooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("a record of %d bytes is over max.message.bytes of topic %s; nothing was written", e.Size, e.Topic)
	}
	return fmt.Sprintf("a record of %d bytes is over the limit of %d bytes for topic %s; nothing was written", e.Size, e.Limit, e.Topic)
}

// NotWrittenError is returned when a record is certainly not in the topic.
type NotWrittenError struct {
	Topic string
	Err   error
}

// Error says why.
func (e *NotWrittenError) Error() string {
	return fmt.Sprintf("nothing was written to topic %s: %v", e.Topic, e.Err)
}

// Unwrap gives the reason.
func (e *NotWrittenError) Unwrap() error { return e.Err }

// UnknownOutcomeError is returned when a record was sent and nobody said whether
// it is in the topic. It may be there, or come still.
type UnknownOutcomeError struct {
	Topic string
	Err   error
}

// Error says so.
func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("it is not known whether the record is in topic %s (%v); sending it again with the same statement id is safe", e.Topic, e.Err)
}

// Unwrap gives the reason.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// AbandonedError is returned when something that was told to stop did not return
// before its deadline. Its goroutine is still there, and may still write.
type AbandonedError struct {
	Name     string
	Deadline time.Duration
}

// Error names it.
func (e *AbandonedError) Error() string {
	return fmt.Sprintf("%s was told to stop and did not within %s; it is left behind, and only a new process is safe", e.Name, e.Deadline)
}

// ProblemsError is returned when topics have settings that must not be worked with.
type ProblemsError struct{ Problems []Problem }

// Missing reports whether a topic is not there at all, which comes before all that is
// wrong with the others.
func (e *ProblemsError) Missing() bool {
	return slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Missing })
}

// Error lists them.
func (e *ProblemsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "the catalog's topics are not as they must be: " + strings.Join(lines, "; ")
}
