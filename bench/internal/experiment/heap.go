package experiment

import "runtime"

// LiveHeap returns the bytes of heap that are in use after everything unused has been collected.
func LiveHeap() int64 {
	// The second collection frees what finalizers, cleanups and pools held on to during the first.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Allocated returns the bytes and the number of all allocations so far.
func Allocated() (bytes, objects uint64) {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc, stats.Mallocs
}
