package sortkey

import (
	"encoding/binary"
	"math"
	"strings"
	"time"
)

// longUnits are additional units of durations, in hours.
var longUnits = map[byte]time.Duration{'d': 24, 'w': 7 * 24, 'y': 365 * 24}

// ParseDuration parses a duration in Go syntax, extended by days, weeks and years of 24 hours, 7 days and 365
// days: 90d, 1w2d12h.
func ParseDuration(text string) (time.Duration, bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, true
	}
	rest, negative := strings.CutPrefix(text, "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	var total time.Duration
	for rest != "" {
		part, after, ok := cutUnit(rest)
		if !ok || total > math.MaxInt64-part {
			return 0, false
		}
		total, rest = total+part, after
	}
	if negative {
		total = -total
	}
	return total, strings.ContainsAny(text, "0123456789")
}

// cutUnit parses a number with its unit.
func cutUnit(text string) (d time.Duration, rest string, ok bool) {
	unit := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if unit <= 0 {
		return 0, "", false
	}
	if hours, isLong := longUnits[text[unit]]; isLong {
		d, err := time.ParseDuration(text[:unit] + "h")
		return d * hours, text[unit+1:], err == nil && d <= math.MaxInt64/hours
	}
	end := len(text)
	if next := strings.IndexAny(text[unit:], ".0123456789"); next >= 0 {
		end = unit + next
	}
	d, err := time.ParseDuration(text[:end])
	return d, text[end:], err == nil
}

const day = 24 * 60 * 60 // seconds

// encodeDate encodes the number of days.
func encodeDate(text string) (string, bool) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return "", false
	}
	return keyOfInt(t.Unix() / day), true // midnight: no remainder
}

func decodeDate(key string) (string, bool) {
	days, ok := intOfKey[int64](key)
	if days < -800000 || days > 3000000 { // before year 0 or after 9999
		return "", false
	}
	return time.Unix(days*day, 0).UTC().Format(time.DateOnly), ok
}

// encodeTime encodes the seconds and, if not zero, the nanoseconds: a shorter key comes first. A date is
// midnight UTC.
func encodeTime(text string) (string, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t, err = time.Parse(time.DateOnly, text)
	}
	if err != nil {
		return "", false
	}
	key := keyOfInt(t.Unix())
	if n := t.Nanosecond(); n != 0 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(n))
		key += string(b[:])
	}
	return key, true
}

func decodeTime(key string) (string, bool) {
	var nanos int64
	if len(key) == 12 {
		nanos, key = int64(binary.BigEndian.Uint32([]byte(key[8:]))), key[:8]
	}
	seconds, ok := intOfKey[int64](key)
	return time.Unix(seconds, nanos).UTC().Format(time.RFC3339Nano), ok
}
