package indexers

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxReported bounds the keys that Stats.Reported holds.
const maxReported = 10

// Stats says what an index function met. An informer asks the function about an object each time it
// adds it, and twice when it changes (for the old and for the new state), and once more when it is
// deleted; so these count calls, not objects that exist.
type Stats struct {
	// Index is the name of the index.
	Index string
	// Seen counts the calls with an object.
	Seen uint64
	// Matched counts those that gave at least one value; Values counts the values.
	Matched, Values uint64
	// SkippedWhen counts objects for which "when" does not hold.
	SkippedWhen uint64
	// SkippedMissing counts values that were missing and that nothing stands for.
	SkippedMissing uint64
	// SkippedType counts values that are not of the type of the index, lists and maps, and [Null] as
	// text.
	SkippedType uint64
	// SkippedLimit counts values beyond maxValues or longer than maxValueBytes, and values of more than 64
	// KiB before a regex.
	SkippedLimit uint64
	// Failed counts calls with something that is not a Kubernetes object.
	Failed uint64
	// Reported holds the keys, namespace/name, of the first ten objects without a value, for indexes
	// with "missing: report".
	Reported []string
}

// String says in one line what is worth knowing, such as "issuer: matched 0 of 120; skipped 3 values for
// their type".
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: matched %d of %d", s.Index, s.Matched, s.Seen)
	for _, skipped := range []struct {
		n   uint64
		why string
	}{
		{s.SkippedMissing, "skipped %d missing values"}, {s.SkippedType, "skipped %d values for their type"},
		{s.SkippedLimit, "skipped %d values beyond a limit"}, {s.SkippedWhen, "%d objects are not meant"},
		{s.Failed, "%d calls had no object"},
	} {
		if skipped.n > 0 {
			fmt.Fprintf(&b, "; "+skipped.why, skipped.n)
		}
	}
	return b.String()
}

// counters is what Stats is made from.
type counters struct {
	seen, matched, values, when, missing, kind, limit, failed atomic.Uint64
	reported                                                  struct {
		sync.Mutex
		keys []string
	}
}

// report remembers an object without a value, whose key is only made while there is room for it.
func (c *counters) report(key func() string) {
	c.reported.Lock()
	full := len(c.reported.keys) >= maxReported
	c.reported.Unlock()
	if full {
		return
	}
	k := key()
	c.reported.Lock()
	defer c.reported.Unlock()
	if len(c.reported.keys) < maxReported && !slices.Contains(c.reported.keys, k) {
		c.reported.keys = append(c.reported.keys, k)
	}
}

func (c *counters) stats(index string) Stats {
	c.reported.Lock()
	reported := slices.Clone(c.reported.keys)
	c.reported.Unlock()
	return Stats{
		Index: index, Seen: c.seen.Load(), Matched: c.matched.Load(), Values: c.values.Load(),
		SkippedWhen: c.when.Load(), SkippedMissing: c.missing.Load(), SkippedType: c.kind.Load(),
		SkippedLimit: c.limit.Load(), Failed: c.failed.Load(), Reported: reported,
	}
}
