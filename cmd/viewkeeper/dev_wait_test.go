package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// slowNode lacks something else at each look, and is ready after the last.
type slowNode struct {
	lacks [][]string
	asked int
}

func (n *slowNode) WaitReady(ctx context.Context) error {
	if n.asked == len(n.lacks) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (n *slowNode) Status() viewkeeper.Status {
	n.asked++
	return viewkeeper.Status{Node: "n1", ReadyReasons: n.lacks[n.asked-1], Details: map[string]string{viewkeeper.ReasonNoOwner: "start one"}}
}

func TestDevSaysWhatIsMissing(t *testing.T) {
	n := &slowNode{lacks: [][]string{{"RECOVERING"}, {viewkeeper.ReasonNoOwner}, {viewkeeper.ReasonNoOwner}, nil}}
	var said []string
	err := waitForNode(t.Context(), n, time.Millisecond, func(text string) { said = append(said, text) })
	want := []string{"n1 is not ready yet: RECOVERING", "n1 is not ready yet: NO_OWNER (start one)"}
	if err != nil || !slices.Equal(said, want) {
		t.Errorf("%v %q", err, said)
	}
}

func TestDevStopsWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := &slowNode{lacks: [][]string{{viewkeeper.ReasonNoOwner}, {viewkeeper.ReasonNoOwner}}}
	if err := waitForNode(ctx, n, time.Millisecond, func(string) { cancel() }); err == nil {
		t.Error("the wait ended as if the node were ready")
	}
}
