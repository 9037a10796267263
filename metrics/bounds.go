package metrics

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Programs choose the values of some labels. Their number is bounded, so that a program with a handler for
// each user does not create a series for each.
const (
	// maxHandlers and maxIndexes are the numbers of handlers and indexes of a view with their own series. The
	// sum of the others is in the series others.
	maxHandlers = 20
	maxIndexes  = 100
	othersLabel = "(others)"
	// maxView is the maximum length of a view label. A hash replaces the rest.
	maxView = 120
)

// shortened returns the description of a view as a label. Different views stay different.
func shortened(view string) string {
	if len(view) <= maxView && utf8.ValidString(view) {
		return view
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(view)) // never fails
	return fmt.Sprintf("%s… (%x)", strings.ToValidUTF8(view[:min(len(view), maxView)], ""), hash.Sum64())
}

// mergeRest merges the elements with equal names, and the elements beyond the first names into one named
// others.
func mergeRest[T any](all []T, most int, name func(*T) *string, merge func(into, more *T)) []T {
	var merged []T
	at := map[string]int{}
	for _, one := range all {
		n := name(&one)
		if *n = valid(*n); *n == "" {
			*n = othersLabel
		}
		if _, known := at[*n]; !known && len(at) >= most {
			*n = othersLabel
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

// boundedHandlers merges handlers with equal names: the sum of their depths and the longest lag.
func boundedHandlers(all []status.Handler) []status.Handler {
	return mergeRest(all, maxHandlers, func(h *status.Handler) *string { return &h.Name },
		func(into, more *status.Handler) {
			into.Depth += more.Depth
			into.Lag = max(into.Lag, more.Lag)
		})
}

func boundedIndexes(all []status.IndexMetrics) []status.IndexMetrics {
	return mergeRest(all, maxIndexes, func(x *status.IndexMetrics) *string { return &x.Name },
		func(into, more *status.IndexMetrics) {
			into.Values += more.Values
			into.Entries += more.Entries
		})
}
