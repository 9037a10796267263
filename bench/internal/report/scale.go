package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// scales writes what becomes of caches with very many objects.
func scales(b *strings.Builder, r *Result, folder string) {
	counts := objectCounts(r, experiment.Scale, experiment.Small)
	if len(counts) == 0 {
		return
	}
	fmt.Fprintf(b, `## Up to %s objects

A watch-list of the API server was recorded and multiplied, each object with another name, UID and version. A synthetic API
server in another process sends it, over TLS and HTTP/2 and compressed piece by piece; it has made its answers before, so
that the clients have the processors. Each cache is filled, with a handler that takes the keys; then it follows 5,000
updates a second; then its watch expires, and it lists everything again, of which one object has changed; then it gets an
index with another value for each object; and then it is read. Rest is the resident memory of the process once it has given
back what it can. Reads are a Get now and then while all is listed again, and one after the other while the index is added.
The last column is the most objects against the fewest.

`, commas(int64(counts[len(counts)-1])))
	embed(b, r, folder, "scale-cpu", "scale-heap", "scale-relist")
	titles := []string{"", ""}
	for _, n := range counts {
		titles = append(titles, commas(int64(n)))
	}
	fmt.Fprintln(b, line(append(titles, "growth")))
	fmt.Fprintln(b, "|---|---|"+strings.Repeat("---:|", len(counts)+1))
	for _, m := range scaleMetrics {
		for _, s := range subject.All() {
			if cells, found := scaleCells(r, counts, s.Name, m.metric); found {
				fmt.Fprintln(b, line(append([]string{m.title, s.Title}, cells...)))
			}
		}
	}
	fmt.Fprintln(b)
}

// scaleMetrics are the rows of the table.
var scaleMetrics = []struct{ title, metric string }{
	{"CPU until synced, per object", experiment.CPUPerObject},
	{"live heap per object", experiment.HeapPerObject},
	{"CPU per update", experiment.CPUPerEvent},
	{"CPU of listing again, per object", experiment.RelistCPU},
	{"peak memory meanwhile, of that at rest", experiment.RelistPeak},
	{"longest read meanwhile", experiment.RelistRead},
	{"adding an index, per object", experiment.IndexAddPerObject},
	{"longest read meanwhile", experiment.IndexPause},
	{"longest pause of the collector", experiment.GCPause},
	{"Get, hot", experiment.GetHot},
	{"by a unique value, hot", experiment.IndexHot},
	{"by namespace, cold, per object", experiment.NamespaceCold},
}

// scaleCells are the figures of a subject by the number of objects, and how they grow; found says that there are any.
func scaleCells(r *Result, counts []int, name, metric string) (cells []string, found bool) {
	var values []float64
	for _, n := range counts {
		f, ok := r.Get(Key{Experiment: experiment.Scale, Size: experiment.Small, Objects: n, Subject: name, Metric: metric})
		if !ok {
			cells = append(cells, missing)
			continue
		}
		values = append(values, f.Median)
		cells = append(cells, quantity(metric, f.Median))
	}
	growth := missing
	if len(values) > 1 && values[0] > 0 {
		growth = times(values[len(values)-1] / values[0])
	}
	return append(cells, growth), len(values) > 0
}

// latencies writes how long updates take from the server's write to the handler's call.
func latencies(b *strings.Builder, r *Result, folder string) {
	if !has(r, experiment.LatencySlow, experiment.LatencyFast) {
		return
	}
	b.WriteString(`## From the server's write to the handler's call

The synthetic server writes updates of different objects, one after the other, over TLS and HTTP/2. The handler takes the
key. Server and client share the cores; where a client takes more of them than there is left, updates wait for each other.

`)
	for _, section := range []struct{ experiment, chart, title string }{
		{experiment.LatencySlow, "latency-slow", "200 updates a second"},
		{experiment.LatencyFast, "latency-fast", "5,000 updates a second"},
	} {
		for _, objects := range objectCounts(r, section.experiment, experiment.Small) {
			fmt.Fprintf(b, "### %s, %s objects\n\n", section.title, commas(int64(objects)))
			embed(b, r, folder, section.chart)
			base := subject.ClientGo
			table{experiment: section.experiment, size: experiment.Small, objects: objects, rows: caches(), columns: []column{
				{title: "median", metric: experiment.LatencyP50, base: base},
				{title: "90 %", metric: experiment.LatencyP90, base: base},
				{title: "99 %", metric: experiment.LatencyP99, base: base},
				{title: "99.9 %", metric: experiment.LatencyP999, base: base},
				{title: "client CPU per update", metric: experiment.CPUPerEvent, base: base},
			}}.write(b, r)
		}
	}
}
