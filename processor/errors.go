package processor

import (
	"errors"
	"fmt"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// ErrAlreadyRun is returned by the second call of Run.
var ErrAlreadyRun = errors.New("a processor runs once; make another one")

// errSessionEnded is why an owner stops when the group takes the partition away.
var errSessionEnded = errors.New("the group's session ended")

// BlockedError is returned by a life that may not own the catalog because of what
// the topics hold. Somebody has to decide; until then it is tried again.
type BlockedError struct {
	// Reason is one of the root package's Reason codes.
	Reason string
	// Detail says what was found and the way out.
	Detail string
}

// Error gives both.
func (e *BlockedError) Error() string { return e.Reason + ": " + e.Detail }

// SupersededError is returned by a life when another owner's fence was read behind
// its own.
type SupersededError struct {
	// Own is this owner's epoch, Other the other's, with its node id.
	Own, Other viewkeeper.Epoch
	Owner      string
	// SameID says that the other one has this owner's node id.
	SameID bool
}

// Error names the other owner.
func (e *SupersededError) Error() string {
	text := fmt.Sprintf("another owner has taken over: %s with epoch %d, after this one's %d", e.Owner, e.Other, e.Own)
	if e.SameID {
		text += "; " + kafka.ErrNodeIDTaken.Error()
	}
	return text
}

// Unwrap gives [kafka.ErrNodeIDTaken] where that is the reason. The fence is often
// read before the group says so, and who then comes back at once throws the other out.
func (e *SupersededError) Unwrap() error {
	if e.SameID {
		return kafka.ErrNodeIDTaken
	}
	return nil
}

// errFenceLost is returned when something was written over the owner's fence:
// compaction will take it, so a new one is needed.
var errFenceLost = errors.New("somebody wrote over this owner's fence; taking over again with a new one")

// errPurged is returned when drops may have been purged between goka's recovery of the
// table and its being read on: this process slept for days in between.
var errPurged = errors.New("drops were purged from the table while this process slept; reading the table from its beginning")

// reasonOf gives the code and the sentence for a status that an error leads to, ""
// when it leads to none.
func reasonOf(err error) (code, detail string) {
	var blocked *BlockedError
	if errors.As(err, &blocked) {
		return blocked.Reason, blocked.Detail
	}
	switch kafka.Classify(err).Kind {
	case kafka.KindAway:
		return viewkeeper.ReasonKafkaAway, kafka.Sentence(err)
	case kafka.KindMissing:
		return viewkeeper.ReasonTopicMissing, kafka.Sentence(err)
	case kafka.KindChanged:
		return viewkeeper.ReasonTopicRecreated, kafka.Sentence(err)
	case kafka.KindSettings:
		return viewkeeper.ReasonTopicSettings, kafka.Sentence(err)
	case kafka.KindDenied:
		return viewkeeper.ReasonKafkaDenied, kafka.Sentence(err) + "; give this process's user the rights of an owner (docs/operations.md, Rights), it goes on by itself then"
	case kafka.KindTaken:
		return viewkeeper.ReasonNodeIDTaken, fmt.Sprintf("%v (%s)", kafka.ErrNodeIDTaken, kafka.Sentence(err))
	}
	var superseded *SupersededError
	if err == nil || isEnd(err) || errors.As(err, &superseded) {
		return "", ""
	}
	return viewkeeper.ReasonFailing, "the work for the catalog failed and is begun again: " + kafka.Sentence(err)
}
