package rowtext

import (
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// temporal sets c up for dates, times and intervals, and reports whether a is one.
func (c *column) temporal(a arrow.Array) bool {
	switch a := a.(type) {
	case *array.Date32:
		c.quoted(func(dst []byte, i int) []byte {
			switch v := a.Value(i); v {
			case infiniteDay:
				return append(dst, "infinity"...)
			case -infiniteDay:
				return append(dst, "-infinity"...)
			default:
				return appendDate(dst, v.ToTime())
			}
		})
	case *array.Date64:
		c.quoted(func(dst []byte, i int) []byte { return appendDate(dst, a.Value(i).ToTime()) })
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit
		c.quoted(func(dst []byte, i int) []byte { return appendClock(dst, a.Value(i).ToTime(unit)) })
	case *array.Time64:
		unit := a.DataType().(*arrow.Time64Type).Unit
		c.quoted(func(dst []byte, i int) []byte { return appendClock(dst, a.Value(i).ToTime(unit)) })
	case *array.Timestamp:
		kind := a.DataType().(*arrow.TimestampType)
		c.quoted(func(dst []byte, i int) []byte {
			return appendTimestamp(dst, int64(a.Value(i)), kind.Unit, kind.TimeZone != "")
		})
	case *array.Duration:
		unit := a.DataType().(*arrow.DurationType).Unit
		c.quoted(func(dst []byte, i int) []byte {
			return appendInterval(dst, 0, 0, int64(a.Value(i))*int64(unit.Multiplier()))
		})
	case *array.MonthInterval:
		c.quoted(func(dst []byte, i int) []byte { return appendInterval(dst, int32(a.Value(i)), 0, 0) })
	case *array.DayTimeInterval:
		c.quoted(func(dst []byte, i int) []byte {
			v := a.Value(i)
			return appendInterval(dst, 0, v.Days, int64(v.Milliseconds)*int64(time.Millisecond))
		})
	case *array.MonthDayNanoInterval:
		c.quoted(func(dst []byte, i int) []byte {
			v := a.Value(i)
			return appendInterval(dst, v.Months, v.Days, v.Nanoseconds)
		})
	default:
		return false
	}
	return true
}

// The engine's infinite timestamps and dates. Arrow has no word for them and
// passes them as numbers.
const (
	infinity    = math.MaxInt64
	infiniteDay = math.MaxInt32
)

func appendTimestamp(dst []byte, v int64, unit arrow.TimeUnit, zone bool) []byte {
	switch v {
	case infinity:
		return append(dst, "infinity"...)
	case -infinity:
		return append(dst, "-infinity"...)
	}
	t := unixTime(v, unit)
	dst = appendClock(append(appendDate(dst, t), ' '), t)
	if zone {
		dst = append(dst, "+00"...)
	}
	return dst
}

// unixTime splits before it multiplies: a timestamp in seconds may lie further
// away than nanoseconds in an int64 can say.
func unixTime(v int64, unit arrow.TimeUnit) time.Time {
	perSecond := int64(time.Second / unit.Multiplier())
	seconds, rest := v/perSecond, v%perSecond
	if rest < 0 {
		seconds, rest = seconds-1, rest+perSecond
	}
	return time.Unix(seconds, rest*int64(unit.Multiplier())).UTC()
}

func appendDate(dst []byte, t time.Time) []byte {
	year, month, day := t.Date()
	era := ""
	if year <= 0 {
		year, era = 1-year, " (BC)"
	}
	dst = appendPadded(dst, year, 4)
	dst = appendPadded(append(dst, '-'), int(month), 2)
	dst = appendPadded(append(dst, '-'), day, 2)
	return append(dst, era...)
}

func appendClock(dst []byte, t time.Time) []byte {
	hour, minute, second := t.Clock()
	dst = appendPadded(dst, hour, 2)
	dst = appendPadded(append(dst, ':'), minute, 2)
	dst = appendPadded(append(dst, ':'), second, 2)
	return appendFraction(dst, int64(t.Nanosecond()))
}

// appendFraction prints nanoseconds below a second without closing zeros.
func appendFraction(dst []byte, nanos int64) []byte {
	if nanos == 0 {
		return dst
	}
	dst = appendPadded(append(dst, '.'), int(nanos), 9)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendInterval prints `1 year 2 months 3 days 04:05:06.7`, and `00:00:00` for
// nothing.
func appendInterval(dst []byte, months, days int32, nanos int64) []byte {
	start := len(dst)
	part := func(n int32, unit string) {
		if n == 0 {
			return
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = strconv.AppendInt(dst, int64(n), 10)
		dst = append(append(dst, ' '), unit...)
		if n != 1 && n != -1 {
			dst = append(dst, 's')
		}
	}
	part(months/12, "year")
	part(months%12, "month")
	part(days, "day")
	if nanos == 0 && len(dst) > start {
		return dst
	}
	if len(dst) > start {
		dst = append(dst, ' ')
	}
	if nanos < 0 {
		dst, nanos = append(dst, '-'), -nanos
	}
	seconds := nanos / int64(time.Second)
	dst = appendPadded(dst, int(seconds/3600), 2)
	dst = appendPadded(append(dst, ':'), int(seconds/60%60), 2)
	dst = appendPadded(append(dst, ':'), int(seconds%60), 2)
	return appendFraction(dst, nanos%int64(time.Second))
}

func appendPadded(dst []byte, n, width int) []byte {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], int64(n), 10)
	for range width - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}
