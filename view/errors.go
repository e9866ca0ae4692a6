package view

import (
	"errors"
	"fmt"

	"github.com/viewkeeper/viewkeeper"
)

// ErrRunTwice is returned when Run is called a second time; make a new node.
var ErrRunTwice = errors.New("a node runs once; make a new one")

// TruncatedError is returned, and tried again, while the table's beginning is gone.
type TruncatedError struct {
	Topic string
	Begin int64
}

// Error says what that means.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the topic %s begins at offset %d and not at 0: its first records were deleted, rows may be missing; restore the catalog with viewkeeper restore",
		e.Topic, e.Begin)
}

// ClusterChangedError is returned when the brokers are of another cluster than the
// one that the table was read from.
type ClusterChangedError struct{ Known, Found string }

// Error names both.
func (e *ClusterChangedError) Error() string {
	return fmt.Sprintf("the brokers are of the cluster %s, and the table was read from the cluster %s", e.Found, e.Known)
}

// HistoryGoneError is returned when somebody asks to go on from a version whose
// decisions are no longer kept.
type HistoryGoneError struct{ From, CompleteFrom viewkeeper.Version }

// Error names the version that there is.
func (e *HistoryGoneError) Error() string {
	return fmt.Sprintf("the decisions after version %d are no longer all kept; the history is whole from version %d on: start from the definitions as they are, and go on from there",
		e.From, e.CompleteFrom)
}
