package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// devPatience is how long dev waits for a node before it says what is missing: a
// directory whose table was lost would otherwise be waited for without a word.
const devPatience = 5 * time.Second

// readiness is what dev waits for.
type readiness interface {
	// WaitReady returns nil when the node is ready, else the context's error.
	WaitReady(ctx context.Context) error
	// Status says why it is not.
	Status() viewkeeper.Status
}

// waitForNode waits until a node is ready. Each time that patience is over it calls
// say with what the node lacks, when that is something new. The error is ctx's.
func waitForNode(ctx context.Context, n readiness, patience time.Duration, say func(string)) error {
	said := ""
	for {
		turn, cancel := context.WithTimeout(ctx, patience)
		err := n.WaitReady(turn)
		cancel()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if text := lacks(n.Status()); text != "" && text != said {
			said = text
			say(text)
		}
	}
}

// lacks words why a node is not ready; "" when it is, or does not say.
func lacks(s viewkeeper.Status) string {
	if len(s.ReadyReasons) == 0 {
		return ""
	}
	reasons := make([]string, len(s.ReadyReasons))
	for i, reason := range s.ReadyReasons {
		reasons[i] = reason
		if detail := s.Details[reason]; detail != "" {
			reasons[i] += " (" + detail + ")"
		}
	}
	return fmt.Sprintf("%s is not ready yet: %s", s.Node, strings.Join(reasons, ", "))
}
