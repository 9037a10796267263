package experiment

// The metrics. The last part of a name is the unit.
const (
	// CPU is processor time, user and system, and Wall elapsed time.
	CPU          = "cpu_s"
	Wall         = "wall_s"
	CPUPerObject = "cpu_us_per_object"
	// Readable is elapsed time until the cache shows something, if only what an earlier process kept.
	Readable = "readable_s"
	// Heap is what is live after a garbage collection, beyond what was before.
	HeapPerObject = "heap_b_per_object"
	// PeakRSS is the most memory that the process had resident.
	PeakRSS = "peak_rss_b"
	// PeakGrowth is PeakRSS beyond what the process had resident before it began.
	PeakGrowth = "peak_growth_b"
	// LiveHeap is HeapPerObject for all objects, Kept how many these are, and Received what came over
	// connections.
	LiveHeap = "heap_b"
	Kept     = "kept_objects"
	Received = "received_b"

	CPUPerEvent   = "cpu_us_per_event"
	AllocPerEvent = "alloc_b_per_event"
	// Latency is from sending an update to the API server until the handler is called; of a synthetic
	// server, from its write until then.
	LatencyP50  = "latency_p50_ms"
	LatencyP90  = "latency_p90_ms"
	LatencyP99  = "latency_p99_ms"
	LatencyP999 = "latency_p999_ms"

	// Hot reads objects again that were read just before; cold reads each object once after a collection.
	GetHot  = "get_hot_ns"
	GetCold = "get_cold_ns"
	// GetCopy is a cold read and a copy of what was read, which is what it takes to get an object of one's
	// own where objects are shared.
	GetCopy   = "get_copy_ns"
	IndexHot  = "by_index_hot_ns"
	IndexCold = "by_index_cold_ns"
	// Lists are per object.
	ListHot       = "list_hot_ns_per_object"
	ListCold      = "list_cold_ns_per_object"
	NamespaceHot  = "by_namespace_hot_ns_per_object"
	NamespaceCold = "by_namespace_cold_ns_per_object"

	// IndexAdd is the time to add an index to a filled cache, IndexPause the longest that a read took
	// meanwhile, and IndexHeap what the index occupies.
	IndexAdd   = "index_add_ms"
	IndexPause = "index_pause_ms"
	IndexHeap  = "index_heap_b_per_object"

	// IndexAddPerObject is IndexAdd for each object.
	IndexAddPerObject = "index_add_us_per_object"

	// RestRSS is the resident memory of a process with a filled cache that has given back what it can, and
	// RelistPeak how many times that the peak is while everything is listed again. RelistRead is the
	// longest that a read took meanwhile.
	RestRSS    = "rest_rss_b_per_object"
	RelistPeak = "relist_peak_times"
	RelistCPU  = "relist_cpu_us_per_object"
	RelistWall = "relist_wall_s"
	RelistRead = "relist_read_ms"
	// GCPause is the longest that the collector stopped the process.
	GCPause = "gc_pause_ms"

	// Small operations, each with its CPU time and its allocations.
	DecodeObject       = "object_ns"
	DecodeObjectAllocs = "object_allocs"
	DecodeList         = "list_ns_per_object"
	DecodeListAllocs   = "list_allocs_per_object"
	// PathOne is PathField with the same object again and again, as in a benchmark of a library.
	PathOne          = "field_one_ns"
	PathOneAllocs    = "field_one_allocs"
	PathField        = "field_ns"
	PathFieldAllocs  = "field_allocs"
	PathFilter       = "filter_ns"
	PathFilterAllocs = "filter_allocs"
	PathList         = "list_ns"
	PathListAllocs   = "list_allocs"
	PathEight        = "eight_raw_ns"
	PathEightAllocs  = "eight_raw_allocs"

	// QueryFew finds a few objects and reads them, QuerySorted does so in an order, and QueryFirst gives
	// the first of all in that order. QueryKeys and QuerySortedKeys find the few, too, and look at their
	// keys alone. QueryDangling gives a few references that lead to nothing.
	QueryFew        = "query_few_ns"
	QuerySorted     = "query_sorted_ns"
	QueryKeys       = "query_keys_ns"
	QuerySortedKeys = "query_sorted_keys_ns"
	QueryFirst      = "query_first_ns"
	QueryDangling   = "query_dangling_ns"

	// What a type occupies once it is synced: live heap, stacks, what the kernel holds for its connections,
	// the sum of these, and resident memory; and its goroutines.
	TypeHeap       = "type_heap_b"
	TypeStack      = "type_stack_b"
	TypeKernel     = "type_kernel_b"
	TypeMemory     = "type_memory_b"
	TypeRSS        = "type_rss_b"
	TypeGoroutines = "type_goroutines"
	// IdleCPU is the share of one processor that all types take while nothing happens, in percent.
	IdleCPU = "idle_cpu_percent"
)

// Latencies has the share of updates that each of these metrics tells of.
func Latencies() map[string]float64 {
	return map[string]float64{LatencyP50: 0.5, LatencyP90: 0.9, LatencyP99: 0.99, LatencyP999: 0.999}
}
