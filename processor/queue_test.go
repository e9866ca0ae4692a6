package processor

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestQueue(t *testing.T) {
	q := newQueue(4 * itemOverhead)
	var done []int64
	add := func(offset int64, size int) {
		q.push(t.Context(), &item{offset: offset, size: size, done: func(error) { done = append(done, offset) }})
	}
	offsets := func(batch []*item) (out []int64) {
		for _, it := range batch {
			out = append(out, it.offset)
		}
		return out
	}
	add(0, 10)
	add(1, 10)
	add(2, 400)
	if got := offsets(q.take(20)); !slices.Equal(got, []int64{0, 1}) {
		t.Errorf("the first batch is %v", got)
	}
	if got := offsets(q.take(20)); !slices.Equal(got, []int64{2}) {
		t.Errorf("a large item goes alone: %v", got)
	}
	if got := q.take(20); len(got) != 0 || q.size() != 0 {
		t.Errorf("%v, %d bytes", got, q.size())
	}
	add(3, 1<<30) // fits into an empty queue whatever its size
	full := make(chan struct{})
	go func() {
		defer close(full)
		add(4, 1)
	}()
	if got := offsets(q.take(1)); !slices.Equal(got, []int64{3}) {
		t.Errorf("%v", got)
	}
	<-full
	q.close(nil)
	add(5, 1)
	if !slices.Equal(done, []int64{4, 5}) {
		t.Errorf("done are %v", done)
	}
}

// A full queue is woken by the end of the owner.
func TestQueueFullAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		cause error
		told  error
	}{{errSessionEnded, nil}, {context.Canceled, nil}, {errFenceLost, errFenceLost}} {
		q := newQueue(1)
		ctx, stop := context.WithCancelCause(t.Context())
		q.push(ctx, &item{size: 1})
		told := make(chan error, 1)
		go q.push(ctx, &item{size: 1, done: func(err error) { told <- err }})
		stop(c.cause)
		if err := <-told; !errors.Is(err, c.told) {
			t.Errorf("%v: told %v", c.cause, err)
		}
	}
}
