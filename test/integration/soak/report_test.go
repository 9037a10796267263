package soak_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// reportSection returns the results of a run for docs/reliability.md.
func (w *fixture) reportSection(seed uint64, duration time.Duration) string {
	var text strings.Builder
	fmt.Fprintf(&text, `%s, %s, %d processors, seed %d; %d types (%d are created and deleted), %d objects, %d updates a second, %d handlers;
%d rounds of %s of faults, each up to %d s. The server accepted %d writes; %d failed or got no answer.

`, duration.Round(time.Minute), runtime.Version(), runtime.NumCPU(), seed,
		options.types, options.recreated, options.objects, options.updates, options.handlers,
		len(w.measurements), options.round, options.limit, w.written.done.Load(), w.written.failed.Load())
	w.writeComparison(&text)
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(w.actions)) {
		faults = append(faults, fmt.Sprintf("%s (%d)", name, w.actions[name]))
	}
	fmt.Fprintf(&text, "\nFaults and changes: %s.\n", strings.Join(faults, "; "))
	w.writeGrowth(&text)
	return text.String()
}

// writeComparison writes the table of crdcache and client-go under the same faults.
func (w *fixture) writeComparison(text *strings.Builder) {
	ours, theirs := w.crdcacheRequests.sent(), w.clientGoRequests.sent()
	of := func(value func(agreementTimes) time.Duration) (median, longest float64) {
		var all []float64
		for _, o := range w.outcomes {
			all = append(all, value(o).Seconds())
		}
		slices.Sort(all)
		return all[len(all)/2], all[len(all)-1]
	}
	allMedian, allLongest := of(func(o agreementTimes) time.Duration { return o.All })
	oursMedian, oursLongest := of(func(o agreementTimes) time.Duration { return o.Ours })
	theirsMedian, theirsLongest := of(func(o agreementTimes) time.Duration { return o.Theirs })
	ourEvents, ourRepeats := countEvents(w.witnesses)
	theirEvents, theirRepeats := countEvents(w.clientGoWitnesses)
	fmt.Fprintf(text, `| | crdcache | client-go |
|---|--:|--:|
| types | %d | %d |
| seconds after the faults until all caches and states equal the server, median (longest) | %.1f (%.1f) | |
| seconds until the caches of the %d shared types do | %.1f (%.1f) | %.1f (%.1f) |
| lists of the %d shared types | %d | %d |
| watch-lists of these | %d | %d |
| watches of these | %d | %d |
| delivered events (repeats of a version) | %d (%d) | %d (%d) |
| inconsistent events, such as an update with another UID | 0 | %d |
`, options.types, options.stock, allMedian, allLongest,
		options.stock, oursMedian, oursLongest, theirsMedian, theirsLongest, options.stock,
		ours.Lists, theirs.Lists, ours.WatchLists, theirs.WatchLists, ours.Watches, theirs.Watches,
		ourEvents, ourRepeats, theirEvents, theirRepeats, w.clientGoInconsistencies)
}

// countEvents returns the numbers of all events and of repeated versions.
func countEvents(handlers []*handler) (events, repeats int) {
	for _, h := range handlers {
		c := h.Counts()
		events, repeats = events+c.Events, repeats+c.Repeats
	}
	return events, repeats
}

// writeGrowth writes the growth of the process, which runs all informers, over the rounds.
func (w *fixture) writeGrowth(text *strings.Builder) {
	if len(w.measurements) >= minMeasurements {
		g := growthOf(w.measurements)
		text.WriteString("\n| after each round | mean | growth over the run without its first quarter | standard error |\n|---|--:|--:|--:|\n")
		fmt.Fprintf(text, "| live heap, MiB | %.1f | %+.2f | %.2f |\n", g.heap.Mean/(1<<20),
			g.heap.Growth/(1<<20), g.heap.Deviation/(1<<20))
		fmt.Fprintf(text, "| goroutines | %.0f | %+.1f | %.1f |\n", g.goroutines.Mean, g.goroutines.Growth,
			g.goroutines.Deviation)
		fmt.Fprintf(text, "| open files | %.0f | %+.1f | %.1f |\n", g.files.Mean, g.files.Growth,
			g.files.Deviation)
	}
}
