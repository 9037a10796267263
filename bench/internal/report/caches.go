package report

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// caches are the rows of tables about caches.
func caches() []row {
	var rows []row
	for _, s := range subject.All() {
		rows = append(rows, row{s.Name, s.Title})
	}
	return rows
}

// syncs writes what it costs to fill caches.
func syncs(b *strings.Builder, r *Result, folder string) {
	if !has(r, experiment.Sync) {
		return
	}
	b.WriteString(`## Filling a cache

From making the client until the cache is synced, without handlers. crdcache's packed mode is its default. Elapsed time
is compared with the bare stream (as many times as long). Live heap is what a garbage collection leaves, beyond what the
process had before: objects, keys, the index by namespace, and about 250 KB for the connection. Peak memory is that
of the whole process with the libraries of all subjects linked in: what the bare stream needs is needed for nothing.

`)
	embed(b, r, folder, "fill-cpu", "fill-heap", "fill-peak")
	for _, size := range []string{experiment.Small, experiment.Large} {
		for _, objects := range objectCounts(r, experiment.Sync, size) {
			fmt.Fprintf(b, "### %s objects%s\n\n", commas(int64(objects)), map[string]string{experiment.Large: ", large"}[size])
			table{experiment: experiment.Sync, size: size, objects: objects, rows: caches(), columns: []column{
				{title: "client CPU", metric: experiment.CPU, base: subject.ClientGo},
				{title: "elapsed (of the stream)", metric: experiment.Wall, base: subject.Stream, of: true},
				{title: "live heap per object", metric: experiment.HeapPerObject, base: subject.ClientGo},
				{title: "peak memory", metric: experiment.PeakRSS, base: subject.ClientGo},
			}}.write(b, r)
		}
	}
}

// lists writes what it costs without a watch-list.
func lists(b *strings.Builder, r *Result) {
	for _, objects := range objectCounts(r, experiment.SyncList, experiment.Small) {
		fmt.Fprintf(b, `### %s objects, listed

The same without a watch-list, as with servers that have none: one LIST, served from the server's memory.

`, commas(int64(objects)))
		filled(experiment.SyncList, experiment.Small, objects).write(b, r)
	}
}

// filled is the table of what it costs to fill caches.
func filled(of, size string, objects int) table {
	return table{experiment: of, size: size, objects: objects, rows: caches(), columns: []column{
		{title: "client CPU", metric: experiment.CPU, base: subject.ClientGo},
		{title: "elapsed", metric: experiment.Wall, base: subject.ClientGo},
		{title: "live heap per object", metric: experiment.HeapPerObject, base: subject.ClientGo},
		{title: "peak memory", metric: experiment.PeakRSS, base: subject.ClientGo},
	}}
}

// growth writes how the cost of an object changes with their number.
func growth(b *strings.Builder, r *Result, folder string) {
	counts := objectCounts(r, experiment.Sync, experiment.Small)
	if len(counts) < 2 {
		return
	}
	b.WriteString("## The cost of an object by the number of objects\n\nThe same runs.\n\n")
	for _, g := range []struct{ title, metric, chart string }{
		{"client CPU until synced", experiment.CPUPerObject, "growth-cpu"}, {"live heap", experiment.HeapPerObject, "growth-heap"},
	} {
		embed(b, r, folder, g.chart)
		growthTable(b, r, counts, g.title, g.metric)
	}
}

func growthTable(b *strings.Builder, r *Result, counts []int, title, metric string) {
	titles := []string{title}
	for _, n := range counts {
		titles = append(titles, commas(int64(n)))
	}
	fmt.Fprintln(b, line(titles))
	fmt.Fprintln(b, "|---|"+strings.Repeat("---:|", len(counts)))
	for _, row := range caches() {
		cells := []string{row.title}
		found := false
		for _, n := range counts {
			f, ok := r.Get(Key{Experiment: experiment.Sync, Size: experiment.Small, Objects: n,
				Subject: row.subject, Metric: metric})
			if !ok {
				cells = append(cells, missing)
				continue
			}
			found = true
			cells = append(cells, quantity(f.Metric, f.Median))
		}
		if found {
			fmt.Fprintln(b, line(cells))
		}
	}
	fmt.Fprintln(b)
}

// updates writes what following updates costs.
func updates(b *strings.Builder, r *Result, folder string) {
	if !has(r, experiment.UpdatesKey, experiment.UpdatesRead, experiment.BurstKey, experiment.BurstRead) {
		return
	}
	sections := []struct{ experiment, stream, title string }{
		{experiment.UpdatesKey, experiment.UpdatesKey, "At a steady rate, with a handler that takes the key"},
		{experiment.UpdatesRead, experiment.UpdatesRead, "At a steady rate, with a handler that reads the spec and the status"},
		{experiment.BurstKey, experiment.BurstKey, "In a burst, with a handler that takes the key"},
		{experiment.BurstRead, experiment.BurstKey, "In a burst, with a handler that reads the spec and the status"},
	}
	b.WriteString(`## Following updates

Objects of a filled cache are changed through the API server, each once: its status or an annotation. CPU and
allocations are those of the client for each update. At a steady rate, most of the CPU is waking up, TLS and HTTP for a
single event at a time, which is the same for all; beyond the stream says what a client needs more than the one that only
reads the bytes. In a burst, all updates have been made before the first reaches the client, through a proxy without
TLS. Latency is from sending the update until the handler is called, so most of it is the server's, and the client can
only add to it.

`)
	embed(b, r, folder, "update-cpu", "update-latency")
	for _, s := range sections {
		for _, objects := range objectCounts(r, s.experiment, experiment.Small) {
			fmt.Fprintf(b, "### %s, %s objects\n\n", s.title, commas(int64(objects)))
			stream := Key{Experiment: s.stream, Subject: subject.Stream, Metric: experiment.CPUPerEvent}
			table{experiment: s.experiment, size: experiment.Small, objects: objects, rows: caches(), columns: []column{
				{title: "client CPU per update", metric: experiment.CPUPerEvent, base: subject.ClientGo},
				{title: "beyond the stream", metric: experiment.CPUPerEvent, base: subject.ClientGo, less: stream},
				{title: "allocated per update", metric: experiment.AllocPerEvent, base: subject.ClientGo},
				{title: "latency, median", metric: experiment.LatencyP50},
				{title: "latency, 99 %", metric: experiment.LatencyP99},
			}}.write(b, r)
		}
	}
}

// reads writes what reading costs, and adding an index.
func reads(b *strings.Builder, r *Result) {
	for _, objects := range objectCounts(r, experiment.Reads, experiment.Small) {
		fmt.Fprintf(b, `## Reading, %s objects

CPU for each object that is returned. Hot reads are repeated; cold ones read each object for the first time since a
garbage collection. That matters where objects are decoded when they are read: the collector takes decoded copies that
nobody holds, so that a list of very many is never hot. controller-runtime's readers return deep copies, the
others share their objects.

`, commas(int64(objects)))
		base := subject.ClientGo
		t := table{experiment: experiment.Reads, size: experiment.Small, objects: objects, rows: caches()}
		t.columns = []column{
			{title: "Get, hot", metric: experiment.GetHot, base: base},
			{title: "Get, cold", metric: experiment.GetCold, base: base},
			{title: "Get, cold, and DeepCopy", metric: experiment.GetCopy, base: base},
			{title: "List, hot", metric: experiment.ListHot, base: base},
			{title: "List, cold", metric: experiment.ListCold, base: base},
		}
		t.write(b, r)
		t.columns = []column{
			{title: "by namespace, hot", metric: experiment.NamespaceHot, base: base},
			{title: "by namespace, cold", metric: experiment.NamespaceCold, base: base},
			{title: "by a unique value, hot", metric: experiment.IndexHot, base: base},
			{title: "by a unique value, cold", metric: experiment.IndexCold, base: base},
		}
		t.write(b, r)
		fmt.Fprintf(b, `### Adding an index to them

An index with another value for each object, added to the filled cache while a goroutine reads without a break. The
longest read includes waiting for a processor, of which there are %d.

`, r.Machine.Cores)
		t.columns = []column{
			{title: "time to add", metric: experiment.IndexAdd, base: base},
			{title: "longest read meanwhile", metric: experiment.IndexPause, base: base},
			{title: "live heap per object", metric: experiment.IndexHeap, base: base},
		}
		t.write(b, r)
	}
}
