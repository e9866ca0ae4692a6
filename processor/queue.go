package processor

import (
	"context"
	"errors"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// item is one record of the definitions topic on its way through the owner.
type item struct {
	offset int64
	// done tells goka that the record is dealt with. It is called exactly once.
	done func(error)

	// version is 0 for a record that was decided before this life; nothing is
	// written for it.
	version viewkeeper.Version
	// decision is nil for a statement that repeats a known one; its version counts
	// all the same.
	decision *viewkeeper.Decision
	message  codec.Message // the decision's record
	rows     []viewkeeper.Row
	id       *codec.ID // nil when the producer gave none
	// size is what it adds to a commit row, in bytes of JSON.
	size int
}

// itemOverhead is what an item costs in memory beside its JSON, roughly.
const itemOverhead = 512

// queue holds what was judged and is not yet written, in the order of the input. It
// is bounded in bytes: whoever pushes waits while it is full, though one item of any
// size always fits into an empty queue.
type queue struct {
	limit int

	mu     sync.Mutex
	items  []*item
	bytes  int
	closed bool
	err    error         // what items that come after closing are told
	ready  chan struct{} // holds one token when there are items
	space  chan struct{} // holds one token when something was taken
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1), space: make(chan struct{}, 1)}
}

// push adds an item. When the owner ends first the item is done, as endOf says.
func (q *queue) push(ctx context.Context, it *item) {
	cost := it.size + itemOverhead
	for {
		q.mu.Lock()
		if q.closed {
			err := q.err
			q.mu.Unlock()
			it.done(err)
			return
		}
		if len(q.items) == 0 || q.bytes+cost <= q.limit {
			q.items = append(q.items, it)
			q.bytes += cost
			q.mu.Unlock()
			signal(q.ready)
			return
		}
		q.mu.Unlock()
		select {
		case <-q.space:
		case <-ctx.Done():
			it.done(endOf(ctx))
			return
		}
	}
}

// take gives the items of the next batch: as many as fit into limit together, and at
// least one when there is any.
func (q *queue) take(limit int) []*item {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.items) && (n == 0 || size+q.items[n].size <= limit) {
		size += q.items[n].size
		q.bytes -= q.items[n].size + itemOverhead
		n++
	}
	batch := q.items[:n:n]
	q.items = q.items[n:]
	if n > 0 {
		signal(q.space)
	}
	if len(q.items) > 0 {
		signal(q.ready)
	} else {
		q.items = nil
	}
	return batch
}

// close ends the queue: all items in it, and all that come later, are done with err.
// The first call's err counts.
func (q *queue) close(err error) {
	q.mu.Lock()
	if !q.closed {
		q.closed, q.err = true, err
	}
	err = q.err
	items := q.items
	q.items, q.bytes = nil, 0
	q.mu.Unlock()
	for _, it := range items {
		it.done(err)
	}
	signal(q.space)
}

func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// endOf gives what goka is told about a statement that an ended owner leaves undone.
// A failure ends the goka processor. When the group took the partition away there is
// none: goka marks an offset then, which our session ignores, and the next owner
// judges the statement.
func endOf(ctx context.Context) error {
	if err := context.Cause(ctx); !isEnd(err) {
		return err
	}
	return nil
}

// isEnd reports whether an owner that ended with err ended well.
func isEnd(err error) bool {
	return err == nil || errors.Is(err, errSessionEnded) || errors.Is(err, context.Canceled)
}

// signal puts a token into a channel of one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
