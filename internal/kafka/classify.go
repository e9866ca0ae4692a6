package kafka

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/IBM/sarama"
)

// Kind says what sort of trouble an error is.
type Kind int

// The kinds.
const (
	// KindOther is an error that nobody here knows. It is tried again.
	KindOther Kind = iota
	// KindAway means that brokers do not answer, or not now.
	KindAway
	// KindMissing means that a topic is not there.
	KindMissing
	// KindChanged means that a topic is another one than the one known, or lost
	// its end. Trying again alone does not help; somebody has to decide.
	KindChanged
	// KindDenied means that the brokers do not let this client do it.
	KindDenied
	// KindTooLarge means that a record is over a limit.
	KindTooLarge
	// KindSettings means that the client's settings or versions are wrong.
	KindSettings
	// KindTaken means that another process has come under this one's node id, and the
	// brokers let only the last comer work. Trying again at once would throw that one
	// out in turn.
	KindTaken
	// KindStopped means that the caller gave up, or closed the client.
	KindStopped
)

// Class is what [Classify] says of an error.
type Class struct {
	Kind Kind
	// Retry says that the same call can succeed later without anybody's change to
	// this process. Rights and topics can be given while it runs.
	Retry bool
	// Reason says in a few words why, for logs and status.
	Reason string
}

// Classify tells what an error of sarama, of goka or of this package means. It is
// the only place that decides what is tried again.
func Classify(err error) Class {
	var (
		missing  *MissingTopicError
		changed  *TopicChangedError
		large    *TooLargeError
		problems *ProblemsError
		config   sarama.ConfigurationError
		abandon  *AbandonedError
		kerr     sarama.KError
		netErr   net.Error
	)
	switch {
	case err == nil:
		return Class{}
	case errors.As(err, &missing):
		return Class{KindMissing, true, "the topic is not there; it can be created at any time"}
	case errors.As(err, &changed):
		return Class{KindChanged, true, "the topic is not the one known"}
	case errors.As(err, &problems) && problems.Missing():
		return Class{KindMissing, true, "a topic is not there; it can be created at any time"}
	case errors.As(err, &problems):
		return Class{KindSettings, true, "a topic has wrong settings; they can be corrected at any time"}
	case errors.As(err, &large), errors.Is(err, sarama.ErrMessageSizeTooLarge):
		return Class{KindTooLarge, false, "the same record is too large every time"}
	case errors.As(err, &abandon):
		return Class{KindStopped, false, "something that was told to stop did not; only a new process is safe"}
	case errors.As(err, &config):
		return Class{KindSettings, false, "the client's settings are wrong"}
	case errors.Is(err, context.Canceled), errors.Is(err, sarama.ErrClosedClient),
		errors.Is(err, sarama.ErrShuttingDown), errors.Is(err, ErrEmitterClosed):
		return Class{KindStopped, false, "the caller stopped it"}
	case errors.Is(err, ErrNodeIDTaken):
		return classifyBroker(sarama.ErrFencedInstancedId)
	case errors.As(err, &kerr):
		return classifyBroker(kerr)
	case errors.Is(err, context.DeadlineExceeded):
		return Class{KindAway, true, "no answer in time"}
	case errors.Is(err, sarama.ErrOutOfBrokers), errors.Is(err, sarama.ErrNotConnected),
		errors.Is(err, sarama.ErrControllerNotAvailable), errors.Is(err, sarama.ErrIncompleteResponse),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.As(err, &netErr) && !isErrno(netErr):
		return Class{KindAway, true, "the broker can't be reached"}
	}
	if deniedByText(err) {
		return classifyBroker(sarama.ErrTopicAuthorizationFailed)
	}
	return Class{KindOther, true, "unknown; tried again"}
}

// isErrno reports whether an error of the network is only a bare number of the
// system's. Those have the methods of a net.Error as well, also where a full disk or
// a locked file is meant; what a connection says is in a net.OpError.
func isErrno(err net.Error) bool {
	_, bare := err.(syscall.Errno)
	return bare
}

// denials are what a broker answers to a client without the right.
func denials() []sarama.KError {
	return []sarama.KError{
		sarama.ErrTopicAuthorizationFailed, sarama.ErrGroupAuthorizationFailed, sarama.ErrClusterAuthorizationFailed,
		sarama.ErrSASLAuthenticationFailed, sarama.ErrTransactionalIDAuthorizationFailed,
	}
}

// deniedByText knows a denial that has lost its type: goka makes text of what ends
// a view. The words are sarama's own for the code and the same in every release so
// far; a test holds them against what comes through goka.
func deniedByText(err error) bool {
	text := err.Error()
	return slices.ContainsFunc(denials(), func(k sarama.KError) bool { return strings.Contains(text, k.Error()) })
}

func classifyBroker(err sarama.KError) Class {
	switch err {
	case sarama.ErrUnknownTopicOrPartition:
		return Class{KindMissing, true, "the topic is not there; it can be created at any time"}
	case sarama.ErrOffsetOutOfRange:
		return Class{KindChanged, true, "the topic does not have the offset: it was truncated or made anew"}
	case sarama.ErrFencedInstancedId:
		return Class{KindTaken, true, "another process works under this node id; give each process a --node-id of its own"}
	case sarama.ErrTopicAuthorizationFailed, sarama.ErrGroupAuthorizationFailed, sarama.ErrClusterAuthorizationFailed,
		sarama.ErrSASLAuthenticationFailed, sarama.ErrTransactionalIDAuthorizationFailed:
		return Class{KindDenied, true, "this client has no right to do it; rights can be given at any time"}
	case sarama.ErrMessageSizeTooLarge:
		return Class{KindTooLarge, false, "the same record is too large every time"}
	case sarama.ErrUnsupportedVersion, sarama.ErrUnsupportedForMessageFormat, sarama.ErrUnsupportedSASLMechanism,
		sarama.ErrIllegalSASLState, sarama.ErrInvalidTopic, sarama.ErrInvalidConfig:
		return Class{KindSettings, false, "broker and client do not fit"}
	}
	return Class{KindAway, true, "the broker can't do it now"}
}
