package reasons

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// The times of a Log.
const (
	// Calm is how long a reason must be absent to have gone. What comes back within
	// it was never away: that is how a flapping broker looks.
	Calm = 10 * time.Second
	// First and Most bound the time between two summaries, which doubles. One that has
	// something new to say comes after a fifth of it.
	First = 5 * time.Minute
	Most  = time.Hour
)

// Log keeps which reasons were said. The zero value is ready; it is not safe for
// concurrent use.
type Log struct {
	open map[string]*episode
}

// episode is one reason from its coming to its going.
type episode struct {
	since, last time.Time // first and last seen
	here        bool
	times       int           // how often it came
	wait        time.Duration // from the last line to the next summary
	said        time.Time     // of the last line; zero when there was none
	saidDetail  string
	detail      string
}

// due reports whether it is time for a summary.
func (e *episode) due(now time.Time) bool {
	wait := e.wait
	if plain(e.detail) != plain(e.saidDetail) {
		wait /= 5
	}
	return now.Sub(e.said) >= wait
}

// plain leaves out digits, which are times, ports and offsets and make nothing new.
func plain(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, text)
}

// Now takes the reasons that there are now, a sentence for each code, and writes what
// is to be said about them. What a start goes through is no warning.
func (l *Log) Now(log *slog.Logger, now time.Time, reasons map[string]string) {
	if l.open == nil {
		l.open = map[string]*episode{}
	}
	for _, code := range slices.Sorted(maps.Keys(reasons)) {
		e := l.open[code]
		if e == nil {
			e = &episode{since: now, wait: First}
			l.open[code] = e
		}
		if e.said.IsZero() && now.Sub(e.since) >= patience(code) {
			e.said, e.saidDetail = now, reasons[code]
			log.Log(context.Background(), Level(code), "something is wrong", "reason", code, "detail", reasons[code], "do", viewkeeper.Advice(code))
		}
		if !e.here {
			e.here = true
			e.times++
		}
		e.last, e.detail = now, reasons[code]
	}
	for _, code := range slices.Sorted(maps.Keys(l.open)) {
		e := l.open[code]
		_, e.here = reasons[code]
		switch {
		case !e.here && now.Sub(e.last) >= Calm:
			delete(l.open, code)
			if e.said.IsZero() {
				break
			}
			log.Info("it is well again", "reason", code, "lasted", round(e.last.Sub(e.since)), "times", e.times)
		case !e.said.IsZero() && e.due(now):
			e.wait, e.said, e.saidDetail = min(2*e.wait, Most), now, e.detail
			log.Log(context.Background(), Level(code), "it is still wrong", "reason", code, "for", round(now.Sub(e.since)), "times", e.times, "detail", e.detail, "do", viewkeeper.Advice(code))
		}
	}
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }

// patience is how long a reason may last before it is said: what every start goes
// through is news only when it does not end.
func patience(code string) time.Duration {
	if isStart(code) {
		return 30 * time.Second
	}
	return 0
}

func isStart(code string) bool {
	return code == viewkeeper.ReasonStarting || code == viewkeeper.ReasonCatchingUp || code == viewkeeper.ReasonBuilding
}

// Level is that of the lines about a reason.
func Level(code string) slog.Level {
	switch code {
	case viewkeeper.ReasonTableBehind, viewkeeper.ReasonTopicRecreated, viewkeeper.ReasonTableTruncated, viewkeeper.ReasonTableDamaged,
		viewkeeper.ReasonStatementsLost, viewkeeper.ReasonDigestDiffers, viewkeeper.ReasonNodeIDTaken, viewkeeper.ReasonOwnerless:
		return slog.LevelError // somebody has to decide something
	}
	return slog.LevelWarn
}
