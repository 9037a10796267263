package report

import (
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// section is one table of the benchmark page. If an experiment was measured with several numbers of objects,
// the table shows one of them (see objects).
type section struct {
	title, text string
	// base is the subject that the others are compared with. A ratio of 2× means half the base's cost.
	base     string
	size     string
	subjects []string
	columns  []column
	// unit is the unit of Figure.Objects: "objects" or "types".
	unit string
}

// column is one metric of an experiment.
type column struct {
	title, experiment, metric string
	// chart is the title of a bar chart of the column. Empty means no chart.
	chart string
}

// pageSections returns the tables of the page.
func pageSections() []section {
	caches := experiment.SubjectNames()
	const clientGo, sync, scale, reads = experiment.ClientGo, experiment.Sync, experiment.Scale,
		experiment.Reads
	const slow, fast, types = experiment.LatencySlow, experiment.LatencyFast, experiment.Types
	return []section{
		{"Filling a cache", "From creating the client until the cache is synced, without handlers. " +
			"Live heap is measured after a garbage collection.",
			clientGo, experiment.Small, caches, []column{
				{"client CPU", sync, experiment.CPU, "Client CPU until synced"},
				{"elapsed", sync, experiment.Wall, ""},
				{"live heap per object", sync, experiment.HeapPerObject, ""},
				{"peak memory", sync, experiment.PeakRSS, "Peak memory until synced"}}, "objects"},
		{"Large objects", "The same with Certificates of 10 KB.",
			clientGo, experiment.Large, caches, []column{
				{"client CPU", sync, experiment.CPU, ""},
				{"live heap per object", sync, experiment.HeapPerObject, ""},
				{"peak memory", sync, experiment.PeakRSS, ""}}, "objects"},
		{"Many objects", "A synthetic API server replays a recorded watch-list with changed object names. " +
			"After the fill, the watch expires and the client relists.",
			clientGo, experiment.Small, caches, []column{
				{"CPU per object", scale, experiment.CPUPerObject, ""},
				{"heap per object", scale, experiment.HeapPerObject, ""},
				{"relist CPU per object", scale, experiment.RelistCPU, ""},
				{"relist peak / memory at rest", scale, experiment.RelistPeak, ""}}, "objects"},
		{"Following updates", "Client CPU for each of 200 updates a second, with a handler that takes the key " +
			"or reads the object. A synthetic API server makes the updates of a burst, because a real one " +
			"cannot make 2,000 at once.",
			clientGo, experiment.Small, caches, []column{
				{"key", experiment.UpdatesKey, experiment.CPUPerEvent, ""},
				{"object", experiment.UpdatesRead, experiment.CPUPerEvent, ""},
				{"burst, key", experiment.BurstKey, experiment.CPUPerEvent,
					"Client CPU per update of a burst"},
				{"burst, object", experiment.BurstRead, experiment.CPUPerEvent, ""}}, "objects"},
		{"Latency", "From the write of a synthetic API server until the handler is called.",
			clientGo, experiment.Small, caches, []column{
				{"200/s: 50 %", slow, experiment.LatencyP50, ""}, {"99 %", slow, experiment.LatencyP99, ""},
				{"99.9 %", slow, experiment.LatencyP999, ""}, {"5,000/s: 50 %", fast,
					experiment.LatencyP50, ""},
				{"99 %", fast, experiment.LatencyP99, ""}, {"99.9 %", fast, experiment.LatencyP999,
					""}}, "objects"},
		{"Reading", "A cold read is the first read of an object after a garbage collection.",
			clientGo, experiment.Small, caches, []column{
				{"Get, hot", reads, experiment.GetHot, ""}, {"Get, cold", reads, experiment.GetCold, ""},
				{"List, hot", reads, experiment.ListHot, ""}, {"by index, hot", reads,
					experiment.IndexHot, ""},
				{"adding an index", reads, experiment.IndexAdd, ""}}, "objects"},
		{"Many types", fmt.Sprintf("One cache for each type of a synthetic API server, with %d objects of 0.3 KB "+
			"each.", experiment.ObjectsPerType),
			clientGo, experiment.Small, caches, []column{
				{"CPU", types, experiment.CPU, ""}, {"elapsed", types, experiment.Wall, ""},
				{"memory per type", types, experiment.TypeMemory, ""},
				{"goroutines per type", types, experiment.TypeGoroutines, ""},
				{"idle CPU, %", types, experiment.IdleCPU, ""}}, "types"},
		{"Restarts", "A process that restores its caches from [storage/disk](persistence.md), compared with a cold start.",
			experiment.Packed, experiment.Small,
			[]string{clientGo, experiment.Packed, experiment.Unchanged, experiment.Changed}, []column{
				{"client CPU", experiment.Restart, experiment.CPU, ""},
				{"received", experiment.Restart, experiment.Received, ""},
				{"until readable", experiment.Restart, experiment.Readable, ""},
				{"until synced", experiment.Restart, experiment.Wall, ""}}, "objects"},
		{"Managers of controller-runtime",
			"From creating the manager until every object is reconciled with one Get.",
			experiment.StockManager, experiment.Small,
			[]string{experiment.StockManager, experiment.OursManager, experiment.CompressedManager}, []column{
				{"unstructured: CPU", experiment.ManageUnstructured, experiment.CPU, ""},
				{"peak", experiment.ManageUnstructured, experiment.PeakRSS, ""},
				{"typed: CPU", experiment.ManageTyped, experiment.CPU, ""},
				{"peak", experiment.ManageTyped, experiment.PeakRSS, ""}}, "objects"},
		{"Operators of controller-runtime",
			"A manager with `For` and `GenerationChangedPredicate`, and with `Owns` for two types that have as many objects " +
				"each: until it is idle, and each of 200 updates a second that do not change the generation. " +
				"The API server is synthetic.",
			experiment.StockManager, experiment.Small,
			[]string{experiment.Stream, experiment.StockManager, experiment.OursManager}, []column{
				{"CPU", experiment.Operator, experiment.CPU, ""},
				{"peak", experiment.Operator, experiment.PeakRSS, ""},
				{"CPU per update", experiment.Operator, experiment.CPUPerEvent, ""}}, "objects of each type"},
		{"Sharded replicas", "One replica until synced, compared with one replica that caches all objects.",
			experiment.OnlyReplica, experiment.Small,
			[]string{experiment.OnlyReplica, experiment.ServerReplica, experiment.ClientReplica}, []column{
				{"received", experiment.Shard, experiment.Received, ""}, {"CPU", experiment.Shard,
					experiment.CPU, ""},
				{"live heap", experiment.Shard, experiment.LiveHeap, ""},
				{"growth at the peak", experiment.Shard, experiment.PeakGrowth, ""}}, "objects"},
		{"Printing all objects",
			"`kubectl get -A -o json` and `crdcache dump -A -o json`, and the same with YAML. " +
				"`query` also prints all objects; `serve` holds the objects in another process.",
			experiment.Kubectl, experiment.Small,
			[]string{experiment.Kubectl, experiment.Ours, experiment.OursQuery, experiment.ServedDump,
				experiment.ServedQuery}, []column{
				{"JSON: CPU", experiment.DumpJSON, experiment.CPU, ""}, {"elapsed", experiment.DumpJSON,
					experiment.Wall, ""},
				{"peak", experiment.DumpJSON, experiment.PeakRSS, ""}, {"YAML: CPU", experiment.DumpYAML,
					experiment.CPU, ""},
				{"peak", experiment.DumpYAML, experiment.PeakRSS, ""}}, "objects"},
	}
}

// tableSize returns the number of objects that the table shows: the one with figures for most subjects, and
// the greatest if several are equal. It uses the first column that has figures. It returns zero if there are
// none.
func (s section) tableSize(r *Result) int {
	counts := map[int]int{}
	best := 0
	for _, c := range s.columns {
		for _, f := range r.Figures {
			if f.Experiment != c.experiment || f.Metric != c.metric || f.Size != s.size ||
				!slices.Contains(s.subjects, f.Subject) {
				continue
			}
			counts[f.Objects]++
			if n := counts[f.Objects] - counts[best]; n > 0 || n == 0 && f.Objects > best {
				best = f.Objects
			}
		}
		if best > 0 {
			return best
		}
	}
	return 0
}

// cellFigure returns the figure of a cell. It chooses the number of objects for each column, because the
// columns' experiments may have used different numbers.
func (s section) cellFigure(r *Result, name string, c column) (float64, bool) {
	objectCount := section{size: s.size, subjects: s.subjects, columns: []column{c}}.tableSize(r)
	f, ok := r.Get(Key{Experiment: c.experiment, Size: s.size, Objects: objectCount, Subject: name,
		Metric: c.metric})
	return f.Median, ok
}

// formatCell formats a figure and its ratio to the base's.
func (s section) formatCell(r *Result, name string, c column) string {
	value, ok := s.cellFigure(r, name, c)
	if !ok {
		return missingCell
	}
	text := formatQuantity(c.metric, value)
	base, ok := s.cellFigure(r, s.base, c)
	if !ok || name == s.base || formatDigits(base) == "0" || formatDigits(value) == "0" {
		return text
	}
	return text + " (" + formatRatio(base/value) + ")"
}

// missingCell is the cell of a figure that was not measured.
const missingCell = "–"
