package processor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/viewkeeper/viewkeeper/internal/reasons"
)

// troubles says in the log what is wrong, once for what goes on. It outlives a life,
// since a blocked process begins one every few seconds.
type troubles struct {
	now func() time.Time

	mu     sync.Mutex
	healed reasons.Seldom
}

// tell says what the board's reasons are, each when it comes and when it has gone,
// until ctx ends.
func (t *troubles) tell(ctx context.Context, log *slog.Logger, b *board) {
	var said reasons.Log
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s, changed := b.get()
		said.Now(log, t.now(), s.Reasons)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
		}
	}
}

// recordsHealed says that records lay over good ones and were written again.
func (t *troubles) recordsHealed(log *slog.Logger, n int) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, say := t.healed.Happened(t.now(), n); say {
		log.Warn("records of the table were healed", "count", n,
			"do", "nothing after a change of owner; if it goes on, find out who else writes to the table")
	}
}
