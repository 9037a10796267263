package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// summary puts metrics on one line, for who watches the run.
func summary(metrics map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		parts = append(parts, fmt.Sprintf("%s=%.4g", name, metrics[name]))
	}
	return strings.Join(parts, " ")
}
