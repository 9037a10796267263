package metrics

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Labels that programs choose the values of are bounded: one that names a handler after each of its users
// must not make Prometheus keep a series for each.
const (
	// maxHandlers is how many handlers of a view have series of their own, maxIndexes how many indexes. What
	// further ones have is added up under others.
	maxHandlers = 20
	maxIndexes  = 100
	others      = "(others)"
	// maxView is the length of a description of a view from which on its end is replaced by a hash.
	maxView = 120
)

// shortened returns the description of a view as a label. Different views stay different.
func shortened(view string) string {
	if len(view) <= maxView && utf8.ValidString(view) {
		return view
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(view)) // which never fails
	return fmt.Sprintf("%s… (%x)", strings.ToValidUTF8(view[:min(len(view), maxView)], ""), hash.Sum64())
}

// bounded merges what has the same name, and what is beyond most names into one under others.
func bounded[T any](all []T, most int, name func(*T) *string, merge func(into, more *T)) []T {
	var merged []T
	at := map[string]int{}
	for _, one := range all {
		n := name(&one)
		if *n = valid(*n); *n == "" {
			*n = others
		}
		if _, known := at[*n]; !known && len(at) >= most {
			*n = others
		}
		k, known := at[*n]
		if !known {
			at[*n] = len(merged)
			merged = append(merged, one)
			continue
		}
		merge(&merged[k], &one)
	}
	return merged
}

// boundedHandlers returns handlers of which no two have the same name: what waits for all of them, and the
// longest lag.
func boundedHandlers(all []status.Handler) []status.Handler {
	return bounded(all, maxHandlers, func(h *status.Handler) *string { return &h.Name },
		func(into, more *status.Handler) {
			into.Depth += more.Depth
			into.Lag = max(into.Lag, more.Lag)
		})
}

func boundedIndexes(all []status.IndexMetrics) []status.IndexMetrics {
	return bounded(all, maxIndexes, func(x *status.IndexMetrics) *string { return &x.Name },
		func(into, more *status.IndexMetrics) {
			into.Values += more.Values
			into.Entries += more.Entries
		})
}
