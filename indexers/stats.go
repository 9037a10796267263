package indexers

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const maxReportedKeys = 10

// Stats are the statistics of an index function. They count calls, not existing objects: an informer calls
// the function when it adds or deletes an object, and twice when an object changes.
type Stats struct {
	Index string
	// Seen is the number of calls with an object.
	Seen uint64
	// Matched is the number of calls that returned a value; Values is the number of values.
	Matched, Values uint64
	// SkippedWhen is the number of objects for which "when" is false.
	SkippedWhen uint64
	// SkippedMissing is the number of missing values without replacement.
	SkippedMissing uint64
	// SkippedType is the number of values that do not have the type of the index, including lists, maps and
	// [Null] as text.
	SkippedType uint64
	// SkippedLimit is the number of values beyond maxValues, longer than maxValueBytes, or longer than 64 KiB
	// before a regex.
	SkippedLimit uint64
	// Failed is the number of calls with something else than a Kubernetes object.
	Failed uint64
	// Reported holds the keys, namespace/name, of the first ten objects without a value, for indexes with
	// "missing: report".
	Reported []string
}

// String returns a summary such as "issuer: matched 0 of 120; skipped 3 values for their type".
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: matched %d of %d", s.Index, s.Matched, s.Seen)
	for _, skipped := range []struct {
		n     uint64
		cause string
	}{
		{s.SkippedMissing, "skipped %d missing values"}, {s.SkippedType, "skipped %d values for their type"},
		{s.SkippedLimit, "skipped %d values beyond a limit"}, {s.SkippedWhen, "%d objects are not meant"},
		{s.Failed, "%d calls had no object"},
	} {
		if skipped.n > 0 {
			fmt.Fprintf(&b, "; "+skipped.cause, skipped.n)
		}
	}
	return b.String()
}

type counters struct {
	calls, matched, values, notSelected, missingValues, mistyped, overLimit, failed atomic.Uint64
	reported                                                                        struct {
		sync.Mutex
		keys []string
	}
}

// report remembers the key of an object without a value, if there is room.
func (c *counters) report(key func() string) {
	c.reported.Lock()
	full := len(c.reported.keys) >= maxReportedKeys
	c.reported.Unlock()
	if full {
		return
	}
	k := key()
	c.reported.Lock()
	defer c.reported.Unlock()
	if len(c.reported.keys) < maxReportedKeys && !slices.Contains(c.reported.keys, k) {
		c.reported.keys = append(c.reported.keys, k)
	}
}

func (c *counters) stats(index string) Stats {
	c.reported.Lock()
	reported := slices.Clone(c.reported.keys)
	c.reported.Unlock()
	return Stats{
		Index: index, Seen: c.calls.Load(), Matched: c.matched.Load(), Values: c.values.Load(),
		SkippedWhen: c.notSelected.Load(), SkippedMissing: c.missingValues.Load(),
		SkippedType:  c.mistyped.Load(),
		SkippedLimit: c.overLimit.Load(), Failed: c.failed.Load(), Reported: reported,
	}
}
