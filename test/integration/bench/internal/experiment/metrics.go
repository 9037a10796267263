package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Metrics. The suffix is the unit.
const (
	// CPU is user and system time, Wall is elapsed time.
	CPU          = "cpu_s"
	Wall         = "wall_s"
	CPUPerObject = "cpu_us_per_object"
	CPUPerEvent  = "cpu_us_per_event"
	// Readable is the time until the cache serves objects, including persisted ones.
	Readable = "readable_s"
	// LiveHeap is the growth of the live heap.
	LiveHeap      = "heap_b"
	HeapPerObject = "heap_b_per_object"
	// PeakRSS is the peak of resident memory, PeakGrowth its difference to the start, and PeakPerLive that
	// difference divided by LiveHeap.
	PeakRSS     = "peak_rss_b"
	PeakGrowth  = "peak_growth_b"
	PeakPerLive = "peak_live_times"
	// PeakPerJSON is PeakRSS divided by the length of the cached objects' JSON.
	PeakPerJSON = "peak_json_times"
	// Received is the number of bytes received from the server.
	Received = "received_b"
	// Latency is the time from the write of a synthetic server to the call of the handler.
	LatencyP50  = "latency_p50_ms"
	LatencyP99  = "latency_p99_ms"
	LatencyP999 = "latency_p999_ms"
	// Hot reads repeat recent reads. Cold reads read each object once after garbage collection. GetCopy is a
	// cold read and a copy of the object, the cost of a private object from a shared cache.
	GetHot       = "get_hot_ns"
	GetCold      = "get_cold_ns"
	GetCopy      = "get_copy_ns"
	IndexHot     = "by_index_hot_ns"
	ListHot      = "list_hot_ns_per_object"
	NamespaceHot = "by_namespace_hot_ns_per_object"
	// IndexAdd is the time to add an index to a filled cache. IndexPause is the longest read during that
	// time, and IndexHeap is the memory of the index.
	IndexAdd          = "index_add_ms"
	IndexAddPerObject = "index_add_us_per_object"
	IndexPause        = "index_pause_ms"
	IndexHeap         = "index_heap_b_per_object"
	// RelistPeak is the peak of resident memory during a relist, divided by the resident memory before it.
	RelistPeak = "relist_peak_times"
	RelistCPU  = "relist_cpu_us_per_object"
	// DecodeObject is the CPU time of decoding one object, and DecodeList of decoding a list.
	DecodeObject = "object_ns"
	DecodeList   = "list_ns_per_object"
	// CPU time of JSONPath expressions. PathField reads a field of many objects. PathFieldSameObject reads
	// the field of one object repeatedly, as benchmarks of libraries do. PathEight evaluates eight paths over
	// JSON.
	PathField           = "field_ns"
	PathFieldSameObject = "field_one_ns"
	PathFilter          = "filter_ns"
	PathEight           = "eight_raw_ns"
	// QueryFew finds and reads a few objects, and QuerySorted sorts them. QueryKeys and QuerySortedKeys
	// return only keys. QueryDangling returns a few dangling references.
	QueryFew        = "query_few_ns"
	QuerySorted     = "query_sorted_ns"
	QueryKeys       = "query_keys_ns"
	QuerySortedKeys = "query_sorted_keys_ns"
	QueryDangling   = "query_dangling_ns"
	// TypeMemory is the live heap, the stacks and the kernel's memory of a synced type.
	TypeMemory     = "type_memory_b"
	TypeGoroutines = "type_goroutines"
	// The same of a controller, without its type. LeftGoroutines and LeftHeap, in percent, remain when all
	// controllers were stopped in StopTime. EnsureCost and SelectCost are those of unchanged calls.
	ControllerMemory     = "controller_memory_b"
	ControllerGoroutines = "controller_goroutines"
	StopTime             = "stop_s"
	LeftGoroutines       = "left_goroutines"
	LeftHeap             = "left_heap_percent"
	EnsureCost           = "ensure_ns"
	SelectCost           = "select_ns"
	// MemoryPerObject is the same memory of all types, divided by the number of objects.
	MemoryPerObject = "memory_b_per_object"
	// IdleCPU is the CPU usage of all types without changes, in percent of one CPU.
	IdleCPU = "idle_cpu_percent"
)

// Latencies returns the quantile of each latency metric.
func Latencies() map[string]float64 {
	return map[string]float64{LatencyP50: 0.5, LatencyP99: 0.99, LatencyP999: 0.999}
}

// sampleCount is the number of objects for experiments that measure one operation, such as decoding.
const sampleCount = 500

// fetchSamples returns the JSON of a list from the API server, and that of its items.
func fetchSamples(ctx context.Context, task Task) (list []byte, items [][]byte) {
	config, err := config(task)
	check(err)
	config = dynamic.ConfigFor(config)
	config.GroupVersion = nil
	client, err := rest.UnversionedRESTClientFor(config)
	check(err)
	list, err = client.Get().AbsPath(pathOf(certificates)).Param("limit", strconv.Itoa(sampleCount)).Do(ctx).Raw()
	check(err)
	var parsed struct{ Items []json.RawMessage }
	check(json.Unmarshal(list, &parsed))
	if len(parsed.Items) == 0 {
		check(errors.New("there are no objects"))
	}
	for _, item := range parsed.Items {
		items = append(items, item)
	}
	return list, items
}
