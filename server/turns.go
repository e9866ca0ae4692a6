package server

import (
	"context"
	"net/http"
	"time"
)

// turns bounds how many queries run at one time, and how many wait for that. A
// thousand queries at once are no faster than a few, and take a thousand times the
// memory of one.
type turns struct {
	running chan struct{} // holds a token for each query that runs
	waiting chan struct{} // and for each that waits or runs
}

// waitingFor is how many queries may wait for each one that may run.
const waitingFor = 8

func newTurns(most int) *turns {
	return &turns{running: make(chan struct{}, most), waiting: make(chan struct{}, most*(1+waitingFor))}
}

// take waits for a turn, and gives what ends it. First come, first served.
func (t *turns) take(ctx context.Context, waiting func(n int)) (done func(), problem *Problem) {
	select {
	case t.waiting <- struct{}{}:
	default:
		return nil, problemf(http.StatusServiceUnavailable, CodeTooBusy,
			"%d queries run on this node and %d wait, which is the most; nothing of yours was run, ask again in a moment, or another node", cap(t.running), cap(t.waiting)-cap(t.running))
	}
	select { // the usual case does not count as waiting
	case t.running <- struct{}{}:
		return t.done, nil
	default:
	}
	began := time.Now()
	waiting(1)
	defer waiting(-1)
	select {
	case t.running <- struct{}{}:
		return t.done, nil
	case <-ctx.Done():
		<-t.waiting
		return nil, problemf(http.StatusServiceUnavailable, CodeTooBusy,
			"%d queries run on this node, which is the most; yours waited for %s, its time limit, and was not run; ask again in a moment, or another node",
			cap(t.running), time.Since(began).Round(time.Millisecond))
	}
}

func (t *turns) done() {
	<-t.running
	<-t.waiting
}
