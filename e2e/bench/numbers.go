package main

import (
	"slices"
	"time"
)

// durations are measured times.
type durations []time.Duration

// at is the quantile q of them, in milliseconds; 0 when there are none.
func (d durations) at(q float64) float64 {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return ms(s[min(len(s)-1, int(q*float64(len(s))))])
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
