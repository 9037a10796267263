package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// restartRows are the rows of tables about restarts.
func restartRows() []row {
	return []row{
		{subject.ClientGo, "client-go dynamicinformer, cold"},
		{subject.Packed, "crdcache, cold"},
		{experiment.Unchanged, title(experiment.Unchanged)},
		{experiment.Changed, title(experiment.Changed)},
	}
}

// restarts writes what a process costs that goes on from what an earlier one kept.
func restarts(b *strings.Builder, r *Result) {
	sections := []struct{ size, text string }{
		{experiment.Small, ""},
		{experiment.Many, fmt.Sprintf(" of %d types, %d of each", experiment.ManyTypes, experiment.ManyEach)},
	}
	first := true
	for _, s := range sections {
		for _, objects := range objectCounts(r, experiment.Restart, s.size) {
			if first {
				fmt.Fprintf(b, `## Restarts

A process that begins with nothing, and one that goes on from what an earlier process kept with [storage/disk](persistence.md), with
default options. Everything is from making the client until the caches have synced; what has been read from the server is counted on
its connections, as it was sent. A cache can be read, as stale, when it shows what was kept; it has synced when the server has
proved that to be current, which takes an API server up to two seconds where anything has been written to it since, of whatever
type. The ratios are against crdcache's cold start.

`)
				first = false
			}
			fmt.Fprintf(b, "### %s objects%s\n\n", commas(int64(objects)), s.text)
			base := subject.Packed
			table{experiment: experiment.Restart, size: s.size, objects: objects, rows: restartRows(), columns: []column{
				{title: "client CPU", metric: experiment.CPU, base: base},
				{title: "read from the server", metric: experiment.Received, base: base},
				{title: "elapsed until readable", metric: experiment.Readable, base: base},
				{title: "elapsed until synced", metric: experiment.Wall, base: base},
				{title: "peak memory", metric: experiment.PeakRSS, base: base},
			}}.write(b, r)
		}
	}
}
