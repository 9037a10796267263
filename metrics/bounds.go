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
	// maxHandlers and maxIndexes are the numbers of handlers and indexes per type and options with their own
	// series. The remaining values are summed in the series others.
	maxHandlers = 20
	maxIndexes  = 100
	othersLabel = "(others)"
	// maxOptionsLabel is the maximum length of an options label. A hash replaces the remaining text.
	maxOptionsLabel = 120
)

// shortenOptions returns the description of options as a label. Different options stay different.
func shortenOptions(options string) string {
	if len(options) <= maxOptionsLabel && utf8.ValidString(options) {
		return options
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(options)) // never fails
	return fmt.Sprintf("%s… (%x)", strings.ToValidUTF8(options[:min(len(options), maxOptionsLabel)], ""),
		hash.Sum64())
}

// mergeBeyond merges the elements with equal names, and the elements beyond the first names into one named
// others.
func mergeBeyond[T any](all []T, most int, name func(*T) *string, merge func(into, more *T)) []T {
	var merged []T
	at := map[string]int{}
	for _, one := range all {
		n := name(&one)
		if *n = validUTF8(*n); *n == "" {
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

// boundedHandlers merges handlers with equal names: the sums of their depths and merged events, and the
// longest lag.
func boundedHandlers(all []status.Handler) []status.Handler {
	return mergeBeyond(all, maxHandlers, func(h *status.Handler) *string { return &h.Name },
		func(into, more *status.Handler) {
			into.Depth += more.Depth
			into.Lag = max(into.Lag, more.Lag)
			into.Coalesced += more.Coalesced
		})
}

func boundedIndexes(all []status.IndexMetrics) []status.IndexMetrics {
	return mergeBeyond(all, maxIndexes, func(x *status.IndexMetrics) *string { return &x.Name },
		func(into, more *status.IndexMetrics) {
			into.Values += more.Values
			into.Entries += more.Entries
		})
}
