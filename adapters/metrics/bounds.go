package metrics

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Programs choose the values of some labels. The limits bound the number of series, even if a program has a
// handler for each user.
const (
	// maxHandlers and maxIndexes limit the handlers and indexes with their own series, for each type and
	// options. The remaining handlers and indexes share the series othersLabel.
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
	return fmt.Sprintf("%s… (%x)", strings.ToValidUTF8(options[:min(len(options), maxOptionsLabel)], ""), hash.Sum64())
}

// mergeAndLimit merges elements with equal names. Elements with names beyond the first limit names are merged
// into one element named othersLabel.
func mergeAndLimit[T any](elements []T, limit int, name func(*T) *string, merge func(into, more *T)) []T {
	var merged []T
	positionByName := map[string]int{}
	for _, element := range elements {
		elementName := name(&element)
		if *elementName = validUTF8(*elementName); *elementName == "" {
			*elementName = othersLabel
		}
		if _, exists := positionByName[*elementName]; !exists && len(positionByName) >= limit {
			*elementName = othersLabel
		}
		position, exists := positionByName[*elementName]
		if !exists {
			positionByName[*elementName] = len(merged)
			merged = append(merged, element)
			continue
		}
		merge(&merged[position], &element)
	}
	return merged
}

// limitHandlers merges handlers with equal names: the sums of their depths and merged events, and the
// longest lag.
func limitHandlers(handlers []status.Handler) []status.Handler {
	return mergeAndLimit(handlers, maxHandlers, func(h *status.Handler) *string { return &h.Name },
		func(into, more *status.Handler) {
			into.Depth += more.Depth
			into.Lag = max(into.Lag, more.Lag)
			into.Coalesced += more.Coalesced
		})
}

func limitIndexes(indexes []status.IndexMetrics) []status.IndexMetrics {
	return mergeAndLimit(indexes, maxIndexes, func(i *status.IndexMetrics) *string { return &i.Name },
		func(into, more *status.IndexMetrics) {
			into.Values += more.Values
			into.Entries += more.Entries
		})
}
