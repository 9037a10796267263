package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// noise writes how far the rounds of the figures that matter most lie apart.
func noise(b *strings.Builder, r *Result) {
	var cpu, heap []float64
	rounds := 0
	for _, f := range r.Figures {
		if f.Experiment != experiment.Sync || len(f.Values) < 2 {
			continue
		}
		rounds = max(rounds, len(f.Values))
		switch f.Metric {
		case experiment.CPU:
			cpu = append(cpu, f.Spread())
		case experiment.HeapPerObject:
			heap = append(heap, f.Spread())
		}
	}
	if rounds == 0 {
		return
	}
	fmt.Fprintf(b, `## How far to trust it

Between the fastest and the slowest of up to %d rounds, client CPU until synced differs by %.0f %% of the median for half of
the subjects and sizes, and by at most %.0f %%; live heap by at most %.1f %%. What was measured with more than 100,000
objects, with large ones, with updates or reads, the printing of YAML, and with 10,000 objects or more those subjects
that matter less, comes from a single round. The objects are synthetic: all Certificates have the same shape, which is
friendly to compression and to shared strings.

`, rounds, 100*median(cpu), 100*Quantile(cpu, 1), 100*Quantile(heap, 1))
}
