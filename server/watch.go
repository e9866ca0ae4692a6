package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// watchPing is how often an idle watch sends a comment, so that proxies and the
// client can tell a quiet catalog from a dead connection.
const watchPing = 15 * time.Second

// getWatch streams an event for each version that changed something. It starts
// behind the version from, or behind Last-Event-ID, which a browser sends by
// itself when it connects again; else with what comes next.
func (s *Server) getWatch(w http.ResponseWriter, r *http.Request) *Problem {
	p := params{r: r}
	from := p.version("from")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		v, err := viewkeeper.ParseVersion(last)
		if err != nil {
			p.fail("Last-Event-ID", "%q is not a version", last)
		}
		from = v
	} else if p.text("from") == "" {
		from = s.cfg.Node.Status().Version
	}
	if p.problem != nil {
		return p.problem
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	out := &eventWriter{w: w, control: http.NewResponseController(w), stall: s.cfg.StallTimeout}
	if out.write(": watching from version %s\n\n", from) != nil {
		return nil
	}
	pings := make(chan struct{})
	go func() {
		defer close(pings)
		defer cancel()
		ticker := time.NewTicker(watchPing)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if out.write(": ping\n\n") != nil {
					return
				}
			case <-s.stopping:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	err := s.cfg.Node.Watch(ctx, from, func(e Event) error {
		e.Changed = emptyIfNil(e.Changed)
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return out.write("id: %s\ndata: %s\n\n", e.Version, data)
	})
	if err != nil && ctx.Err() == nil {
		// The status was sent with the first byte, so the reason is an event too.
		if reason, encodeErr := json.Marshal(problemf(http.StatusGone, CodeGone, "%v", err)); encodeErr == nil {
			_ = out.write("event: error\ndata: %s\n\n", reason)
		}
	}
	cancel()
	<-pings
	return nil
}

// eventWriter writes whole events from two goroutines.
type eventWriter struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

func (o *eventWriter) write(format string, args ...any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	// A server that cannot set deadlines (a test's recorder) writes without one.
	_ = o.control.SetWriteDeadline(time.Now().Add(o.stall))
	if _, err := fmt.Fprintf(o.w, format, args...); err != nil {
		return err
	}
	return o.control.Flush()
}
