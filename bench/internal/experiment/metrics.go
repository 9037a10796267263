package experiment

import (
	"context"
	"encoding/json"
	"fmt"
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
	// Readable is the time until the cache serves objects, including persisted ones.
	Readable = "readable_s"
	// HeapPerObject is the growth of the live heap divided by the number of objects.
	HeapPerObject = "heap_b_per_object"
	// PeakRSS is the peak of resident memory.
	PeakRSS = "peak_rss_b"
	// PeakGrowth is the difference between PeakRSS and the resident memory at the start.
	PeakGrowth = "peak_growth_b"
	// LiveHeap is the growth of the live heap. CachedObjects is the number of cached objects. Received is the
	// number of bytes received from the server.
	LiveHeap      = "heap_b"
	CachedObjects = "kept_objects"
	Received      = "received_b"

	CPUPerEvent   = "cpu_us_per_event"
	AllocPerEvent = "alloc_b_per_event"
	// Latency is the time from sending an update, or from the write of a synthetic server, to the call of the
	// handler.
	LatencyP50  = "latency_p50_ms"
	LatencyP90  = "latency_p90_ms"
	LatencyP99  = "latency_p99_ms"
	LatencyP999 = "latency_p999_ms"

	// Hot reads repeat recent reads. Cold reads read each object once after garbage collection.
	GetHot  = "get_hot_ns"
	GetCold = "get_cold_ns"
	// GetCopy is a cold read and a copy of the object, the cost of a private object from a shared cache.
	GetCopy   = "get_copy_ns"
	IndexHot  = "by_index_hot_ns"
	IndexCold = "by_index_cold_ns"
	// Lists are per object.
	ListHot       = "list_hot_ns_per_object"
	ListCold      = "list_cold_ns_per_object"
	NamespaceHot  = "by_namespace_hot_ns_per_object"
	NamespaceCold = "by_namespace_cold_ns_per_object"

	// IndexAdd is the time to add an index to a filled cache. IndexPause is the longest read during
	// that time, and IndexHeap is the memory of the index.
	IndexAdd   = "index_add_ms"
	IndexPause = "index_pause_ms"
	IndexHeap  = "index_heap_b_per_object"

	// IndexAddPerObject is IndexAdd divided by the number of objects.
	IndexAddPerObject = "index_add_us_per_object"

	// RestRSS is the resident memory per object with a filled cache, after unused memory was released.
	// RelistPeak is the peak of resident memory during a relist, divided by the resident memory before it.
	// RelistRead is the longest read during the relist.
	RestRSS    = "rest_rss_b_per_object"
	RelistPeak = "relist_peak_times"
	RelistCPU  = "relist_cpu_us_per_object"
	RelistWall = "relist_wall_s"
	RelistRead = "relist_read_ms"
	// GCPause is the longest stop of the process by the garbage collector.
	GCPause = "gc_pause_ms"

	// CPU time and allocations of decoding: one object, and a list.
	DecodeObject       = "object_ns"
	DecodeObjectAllocs = "object_allocs"
	DecodeList         = "list_ns_per_object"
	DecodeListAllocs   = "list_allocs_per_object"
	// CPU time and allocations of JSONPath expressions. PathField reads a field of many objects.
	// PathFieldSameObject reads the field of one object repeatedly, as benchmarks of libraries do. PathFilter
	// evaluates a filter, PathList a path to a list, and PathEight eight paths over JSON.
	PathFieldSameObject = "field_one_ns"
	PathOneAllocs       = "field_one_allocs"
	PathField           = "field_ns"
	PathFieldAllocs     = "field_allocs"
	PathFilter          = "filter_ns"
	PathFilterAllocs    = "filter_allocs"
	PathList            = "list_ns"
	PathListAllocs      = "list_allocs"
	PathEight           = "eight_raw_ns"
	PathEightAllocs     = "eight_raw_allocs"

	// QueryFew finds and reads a few objects, QuerySorted sorts them, and QueryFirst returns the first of all
	// objects in that order. QueryKeys and QuerySortedKeys return only keys. QueryDangling returns a few
	// dangling references.
	QueryFew        = "query_few_ns"
	QuerySorted     = "query_sorted_ns"
	QueryKeys       = "query_keys_ns"
	QuerySortedKeys = "query_sorted_keys_ns"
	QueryFirst      = "query_first_ns"
	QueryDangling   = "query_dangling_ns"

	// Resources of a synced type: live heap, stacks, kernel memory of its connections, their sum, resident
	// memory, and goroutines.
	TypeHeap       = "type_heap_b"
	TypeStack      = "type_stack_b"
	TypeKernel     = "type_kernel_b"
	TypeMemory     = "type_memory_b"
	TypeRSS        = "type_rss_b"
	TypeGoroutines = "type_goroutines"
	// IdleCPU is the CPU usage of all types without changes, in percent of one CPU.
	IdleCPU = "idle_cpu_percent"
)

// Latencies returns the quantile of each latency metric.
func Latencies() map[string]float64 {
	return map[string]float64{LatencyP50: 0.5, LatencyP90: 0.9, LatencyP99: 0.99, LatencyP999: 0.999}
}

// sampleCount is the number of objects for experiments that measure one operation, such as decoding.
const sampleCount = 500

// fetchSamples returns the JSON of a list from the API server, and that of its items.
func fetchSamples(ctx context.Context, task Task) (list []byte, items [][]byte, err error) {
	config, err := config(task)
	if err != nil {
		return nil, nil, err
	}
	config = dynamic.ConfigFor(config)
	config.GroupVersion = nil
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	list, err = client.Get().AbsPath("/apis", certificates.Group, certificates.Version,
		certificates.Resource).
		Param("limit", strconv.Itoa(sampleCount)).Do(ctx).Raw()
	if err != nil {
		return nil, nil, err
	}
	var parsed struct{ Items []json.RawMessage }
	if err := json.Unmarshal(list, &parsed); err != nil {
		return nil, nil, err
	}
	if len(parsed.Items) == 0 {
		return nil, nil, fmt.Errorf("there are no objects")
	}
	for _, item := range parsed.Items {
		items = append(items, item)
	}
	return list, items, nil
}
