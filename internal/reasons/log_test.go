package reasons_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/reasons"
)

// diary is a Log under a clock, and what it wrote.
type diary struct {
	reasons.Log
	now  time.Time
	text strings.Builder
}

func (d *diary) is(after time.Duration, now map[string]string) string {
	d.now = d.now.Add(after)
	before := d.text.Len()
	d.Log.Now(slog.New(slog.NewTextHandler(&d.text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), d.now, now)
	return d.text.String()[before:]
}

// A broker is away for a day, and each second the sentence has other numbers in it.
func TestWhatLastsIsSaidMoreAndMoreSeldom(t *testing.T) {
	d := &diary{now: time.Unix(0, 0)}
	first := d.is(0, map[string]string{viewkeeper.ReasonKafkaAway: "no answer for 1s"})
	for _, want := range []string{"level=WARN", `msg="something is wrong"`, "reason=KAFKA_AWAY", `detail="no answer for 1s"`, `do="look at the brokers`} {
		if !strings.Contains(first, want) {
			t.Errorf("%s is missing in %s", want, first)
		}
	}
	var at []time.Duration
	for i := 1; i <= 24*3600; i++ {
		if line := d.is(time.Second, map[string]string{viewkeeper.ReasonKafkaAway: fmt.Sprintf("no answer for %ds", i)}); line != "" {
			at = append(at, time.Duration(i)*time.Second)
			if !strings.Contains(line, "it is still wrong") || strings.Count(line, "\n") != 1 {
				t.Errorf("after %d s: %s", i, line)
			}
		}
	}
	if len(at) > 30 || at[0] != 5*time.Minute || at[1] != 15*time.Minute {
		t.Errorf("%d summaries in a day: %v", len(at), at)
	}
	if line := d.is(time.Second, nil); line != "" {
		t.Errorf("said to be well at once: %s", line)
	}
	if line := d.is(reasons.Calm, nil); !strings.Contains(line, "level=INFO") || !strings.Contains(line, "it is well again") || !strings.Contains(line, "lasted=24h0m0s") {
		t.Errorf("at the end: %s", line)
	}
	if line := d.is(time.Hour, nil); line != "" {
		t.Errorf("and then %s", line)
	}
}

// A broker that comes and goes every few seconds is one trouble.
func TestWhatFlapsIsSaidOnce(t *testing.T) {
	d := &diary{now: time.Unix(0, 0)}
	for i := range 200 { // 13 minutes
		d.is(2*time.Second, map[string]string{viewkeeper.ReasonKafkaAway: "EOF"})
		d.is(2*time.Second, nil)
		if i == 0 && strings.Count(d.text.String(), "\n") != 1 {
			t.Errorf("at first: %s", d.text.String())
		}
	}
	if n := strings.Count(d.text.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, d.text.String())
	}
	if line := d.is(time.Minute, nil); !strings.Contains(line, "times=200") {
		t.Errorf("at the end: %s", line)
	}
}

// What is wrong in another way than before is news, though not at once again and again.
func TestAnotherCauseIsSaid(t *testing.T) {
	d := &diary{now: time.Unix(0, 0)}
	d.is(0, map[string]string{viewkeeper.ReasonBroken: "a is broken"})
	for i := range 600 {
		d.is(time.Second, map[string]string{viewkeeper.ReasonBroken: []string{"a is broken", "b is broken"}[i%2]})
	}
	if n := strings.Count(d.text.String(), "\n"); n != 4 || !strings.Contains(d.text.String(), "b is broken") {
		t.Errorf("%d lines:\n%s", n, d.text.String())
	}
}

// What every start goes through is said when it does not end.
func TestAStartIsNoNews(t *testing.T) {
	d := &diary{now: time.Unix(0, 0)}
	starting := map[string]string{viewkeeper.ReasonStarting: "nothing has been read"}
	d.is(0, starting)
	d.is(20*time.Second, nil)
	d.is(time.Minute, nil)
	if s := d.text.String(); s != "" {
		t.Error(s)
	}
	d.is(0, starting)
	if line := d.is(time.Minute, starting); !strings.Contains(line, "STARTING") {
		t.Errorf("a minute of starting: %q", line)
	}
	if line := d.is(time.Second, map[string]string{viewkeeper.ReasonTableBehind: "the table was lost"}); !strings.Contains(line, "level=ERROR") {
		t.Error(line)
	}
}

// Something happens every second for a day, and once more a week later.
func TestSeldom(t *testing.T) {
	var s reasons.Seldom
	now := time.Unix(1, 0)
	said, total := 0, 0
	for range 24 * 3600 {
		if n, say := s.Happened(now, 2); say {
			said++
			total += n
		}
		now = now.Add(time.Second)
	}
	if said < 20 || said > 40 || total < 2*23*3600 {
		t.Errorf("said %d times, of %d", said, total)
	}
	if n, say := s.Happened(now.Add(7*24*time.Hour), 1); !say || n < 1 {
		t.Errorf("a week later: %d, %v", n, say)
	}
}
