package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

const (
	firstWait = 100 * time.Millisecond
	longWait  = 5 * time.Second
	// steady is how long a run must last for the next wait to be short again.
	steady = 30 * time.Second
	// StopDeadline is how long Supervise waits for a run that was told to stop. A
	// silent broker holds sarama for a few net timeouts.
	StopDeadline = 30 * time.Second
	// takenWait and longTakenWait bound the wait of a process whose node id another
	// one has: whoever comes back throws the other out, so that the catalog would
	// have a new owner with each short wait.
	takenWait     = time.Minute
	longTakenWait = 10 * time.Minute
)

// Supervision says how [Supervise] goes about it. Only Name is needed.
type Supervision struct {
	// Name says what runs, for logs and errors.
	Name string
	Log  *slog.Logger
	// FirstWait and LongWait bound the wait between runs, which doubles each time;
	// defaults 100 ms and 5 s.
	FirstWait, LongWait time.Duration
	// TakenWait is the first wait after [KindTaken], which doubles up to ten times as
	// long; default a minute.
	TakenWait time.Duration
	// StopDeadline is how long a run that was told to stop may take; default 30 s.
	StopDeadline time.Duration
	// Began is told of every run, before it; it may be nil.
	Began func()
	// Ended is told of every run that ended by itself, why, and how long it will
	// take until the next; it may be nil. Whoever takes it makes a reason of it, which
	// is said once: what is blocked is tried every few seconds, for days, and a log
	// full of it hides all else. The log has it at debug.
	Ended func(err error, class Class, wait time.Duration)
}

// Supervise calls run again and again until ctx ends, and waits longer after each
// failure. A run gets a context of its own, and ends it by returning.
//
// It returns nil when ctx has ended and the last run has returned; the run's error
// when [Classify] says that trying again is no use; an *AbandonedError when a run
// was told to stop and did not within the deadline. A panic in run is an error.
func Supervise(ctx context.Context, s Supervision, run func(ctx context.Context) error) error {
	log := s.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	first, long := s.FirstWait, s.LongWait
	if first == 0 {
		first = firstWait
	}
	if long == 0 {
		long = longWait
	}
	wait := newBackoff(first, long)
	taken := newBackoff(takenWait, longTakenWait)
	if s.TakenWait > 0 {
		taken = newBackoff(s.TakenWait, 10*s.TakenWait)
	}
	for {
		began := time.Now()
		if s.Began != nil {
			s.Began()
		}
		err := Stoppable(ctx, s.Name, s.StopDeadline, run)
		var abandoned *AbandonedError
		left := errors.As(err, &abandoned)
		if ctx.Err() != nil {
			if left {
				return err
			}
			return nil
		}
		class := Classify(err)
		if class.Kind == KindStopped && !left {
			class = Class{KindOther, true, "it stopped by itself"}
		}
		if err != nil && !class.Retry {
			log.Error(s.Name+" ended and will not be started again", "error", err, "why", class.Reason)
			return err
		}
		if time.Since(began) > steady {
			wait.reset()
		}
		backoff := wait
		if class.Kind == KindTaken {
			// Not reset by a run that lasted: that is only how long the other one waits.
			backoff = taken
		}
		in := backoff.next()
		log.Debug(s.Name+" ended and will be started again", "error", err, "why", class.Reason, "in", in)
		if s.Ended != nil {
			s.Ended(err, class, in)
		}
		if pauseFor(ctx, in) != nil {
			return nil
		}
	}
}

// Stoppable calls run and gives its error. When ctx ends and run does not return
// within the deadline (0: [StopDeadline]), run is left behind and the error is an
// *AbandonedError. A panic in run is an error.
func Stoppable(ctx context.Context, name string, deadline time.Duration, run func(ctx context.Context) error) error {
	if deadline == 0 {
		deadline = StopDeadline
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Errorf("%s panicked: %v\n%s", name, r, debug.Stack())
			}
		}()
		done <- run(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	t := time.NewTimer(deadline)
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-t.C:
		return &AbandonedError{Name: name, Deadline: deadline}
	}
}

// backoff doubles from first to most, each wait shortened by up to a quarter so
// that a fleet does not come back in step.
type backoff struct{ first, most, now time.Duration }

func newBackoff(first, most time.Duration) *backoff { return &backoff{first, most, first} }

func (b *backoff) reset() { b.now = b.first }

func (b *backoff) next() time.Duration {
	d := b.now
	b.now = min(b.now*2, b.most)
	return d - time.Duration(rand.Int64N(int64(d)/4+1))
}

func (b *backoff) sleep(ctx context.Context) error { return pauseFor(ctx, b.next()) }

func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
