package soak_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// section tells what a run came to, for a document.
func (w *world) section(seed uint64, duration time.Duration) string {
	var text strings.Builder
	fmt.Fprintf(&text, `%s, %s, %d processors, seed %d, with %d types of which %d come and go, %d objects, %d updates a second wanted, %d handlers:
%d rounds of %s of weather, faults of up to %d s. The server took %d writes; %d failed, or got no answer.

`, duration.Round(time.Minute), runtime.Version(), runtime.NumCPU(), seed,
		options.types, options.coming, options.objects, options.updates, options.handlers,
		len(w.measurements), options.round, options.limit, w.written.done.Load(), w.written.failed.Load())
	w.compared(&text)
	text.WriteString("\n| what happened | times |\n|---|--:|\n")
	for _, name := range slices.Sorted(maps.Keys(w.tally)) {
		fmt.Fprintf(&text, "| %s | %d |\n", name, w.tally[name])
	}
	w.trends(&text)
	return text.String()
}

// compared writes the table of what we and client-go came to in the same weather.
func (w *world) compared(text *strings.Builder) {
	ours, theirs := w.ours.sent(), w.theirs.sent()
	of := func(value func(outcome) time.Duration) (median, longest float64) {
		var all []float64
		for _, o := range w.settled {
			all = append(all, value(o).Seconds())
		}
		slices.Sort(all)
		return all[len(all)/2], all[len(all)-1]
	}
	allMedian, allLongest := of(func(o outcome) time.Duration { return o.All })
	oursMedian, oursLongest := of(func(o outcome) time.Duration { return o.Ours })
	theirsMedian, theirsLongest := of(func(o outcome) time.Duration { return o.Theirs })
	ourEvents, ourRepeats := counts(w.witnesses)
	theirEvents, theirRepeats := counts(w.stockWitnesses)
	fmt.Fprintf(text, `| | crdcache | client-go |
|---|--:|--:|
| types followed | %d | %d |
| seconds until all equalled the server's after the weather and the status said so, median (longest) | %.1f (%.1f) | |
| seconds until the caches did of the %d types that both follow | %.1f (%.1f) | %.1f (%.1f) |
| lists of the %d types that both follow | %d | %d |
| watches that begin with a list, of these | %d | %d |
| watches, of these | %d | %d |
| events delivered (repeats of a version) | %d (%d) | %d (%d) |
| events that make no sense after those before, as an update that is another object | 0 | %d |
`, options.types, options.stock, allMedian, allLongest,
		options.stock, oursMedian, oursLongest, theirsMedian, theirsLongest, options.stock,
		ours.Lists, theirs.Lists, ours.WatchLists, theirs.WatchLists, ours.Watches, theirs.Watches,
		ourEvents, ourRepeats, theirEvents, theirRepeats, w.stockNonsense)
}

func counts(handlers []*handler) (events, repeats int) {
	for _, h := range handlers {
		c := h.Counts()
		events, repeats = events+c.Events, repeats+c.Repeats
	}
	return events, repeats
}

// trends writes how the needs of the process, which has everybody in it, developed, as lines and in figures.
func (w *world) trends(text *strings.Builder) {
	if len(w.measurements) >= judged {
		g := growthOf(w.measurements)
		text.
			WriteString(
				"\n| after each round | mean | growth over the run without its first quarter | standard error |\n|---|--:|--:|--:|\n")
		fmt.Fprintf(text, "| live heap, MiB | %.1f | %+.2f | %.2f |\n", g.heap.Mean/(1<<20),
			g.heap.Growth/(1<<20), g.heap.Deviation/(1<<20))
		fmt.Fprintf(text, "| goroutines | %.0f | %+.1f | %.1f |\n", g.goroutines.Mean, g.goroutines.Growth,
			g.goroutines.Deviation)
		fmt.Fprintf(text, "| open files | %.0f | %+.1f | %.1f |\n", g.files.Mean, g.files.Growth,
			g.files.Deviation)
	}
	w.chart(text, "live heap, MiB", func(m measurement) float64 { return m.Heap / (1 << 20) })
	w.chart(text, "goroutines", func(m measurement) float64 { return float64(m.Goroutines) })
	w.chart(text, "open files", func(m measurement) float64 { return float64(m.Files) })
}

// chart writes a line through the rounds, in the language that GitHub draws.
func (w *world) chart(text *strings.Builder, name string, value func(measurement) float64) {
	var at, values []string
	top := 1.0
	for _, m := range w.measurements {
		at, values = append(at, fmt.Sprintf("%.0f", m.At.Minutes())), append(values,
			fmt.Sprintf("%.1f", value(m)))
		top = max(top, value(m)*1.2)
	}
	fmt.Fprintf(
		text, "\n```mermaid\nxychart-beta\n  title \"%s\"\n  x-axis \"minutes\" [%s]\n  y-axis 0 --> %.0f\n  line [%s]\n```\n",
		name, strings.Join(at, ", "), top, strings.Join(values, ", "))
}
