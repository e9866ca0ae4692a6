package reasons

import "time"

// Seldom says when to speak of what happens again and again: the first time at once,
// then at intervals that grow from a minute to an hour. After a pause as long as two
// intervals it begins anew. The zero value is ready; it is not safe for concurrent use.
type Seldom struct {
	last, said time.Time
	wait       time.Duration
	count      int
}

// Happened notes that it happened n more times. With say it is time to speak of it,
// and count is how often it happened since that was done last.
func (s *Seldom) Happened(now time.Time, n int) (count int, say bool) {
	if now.Sub(s.last) >= 2*s.wait {
		s.wait, s.said = 0, time.Time{}
	}
	s.last = now
	s.count += n
	if now.Sub(s.said) < s.wait {
		return 0, false
	}
	s.wait = min(max(2*s.wait, time.Minute), Most)
	s.said = now
	count, s.count = s.count, 0
	return count, true
}
