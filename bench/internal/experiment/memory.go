package experiment

import "runtime"

// liveHeap returns the live heap in bytes after garbage collection.
func liveHeap() int64 {
	// The second collection frees memory that finalizers, cleanups and pools retained during the first.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// allocations returns the bytes and the number of all allocations so far.
func allocations() (bytes, objects uint64) {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc, stats.Mallocs
}

// peakRSS returns the peak of resident memory in bytes since the start of the program. getrusage is
// unsuitable, because a process inherits the peak of its parent there.
func peakRSS() (int64, error) { return statusBytes("VmHWM:") }
