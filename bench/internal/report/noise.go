package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// noisy are the figures that promises are judged by, and that differ between rounds.
var noisy = []struct{ title, experiment, metric string }{
	{"client CPU until synced", experiment.Sync, experiment.CPU},
	{"live heap", experiment.Sync, experiment.HeapPerObject},
	{"client CPU until synced, from the synthetic server", experiment.Scale, experiment.CPUPerObject},
	{"client CPU per update, taking the key", experiment.UpdatesKey, experiment.CPUPerEvent},
	{"client CPU per update, reading the object", experiment.UpdatesRead, experiment.CPUPerEvent},
	{"latency of 200 updates a second, 99 %", experiment.LatencySlow, experiment.LatencyP99},
	{"latency of 200 updates a second, 99.9 %", experiment.LatencySlow, experiment.LatencyP999},
	{"latency of 5,000 updates a second, 99.9 %", experiment.LatencyFast, experiment.LatencyP999},
	{"Get, hot", experiment.Reads, experiment.GetHot},
}

// noise writes how far the rounds of the figures that matter most lie apart.
func noise(b *strings.Builder, r *Result) {
	var lines []string
	for _, n := range noisy {
		var spreads []float64
		rounds := 0
		for _, f := range r.Select(func(f Figure) bool { return f.Experiment == n.experiment && f.Metric == n.metric }) {
			if rounds = max(rounds, len(f.Values)); len(f.Values) > 1 {
				spreads = append(spreads, f.Spread())
			}
		}
		if len(spreads) > 0 {
			lines = append(lines, line([]string{n.title, fmt.Sprint(rounds), percent(median(spreads)), percent(Quantile(spreads, 1))}))
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, `## How far to trust it

By how much of its median the least and the greatest round of a figure differ: for half of the subjects and sizes by no more
than the third column, and for none by more than the last. What is not here comes from a single round, or is compared by
more than noise could turn. The objects are synthetic: all Certificates have the same shape, which is friendly to compression
and to shared strings.

| | rounds, at most | half differ by | none by more than |
|---|---:|---:|---:|
%s

`, strings.Join(lines, "\n"))
}

func percent(share float64) string { return digits(100*share) + " %" }
