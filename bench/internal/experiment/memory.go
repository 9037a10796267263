package experiment

import "runtime"

// liveHeap returns the bytes of heap that are in use after everything unused has been collected.
func liveHeap() int64 {
	// The second collection frees what finalizers, cleanups and pools held on to during the first.
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

// peakRSS returns the most memory in bytes that this process has had resident since it began to run its
// program. What getrusage gives is no replacement: there a process inherits the peak of the one that started
// it.
func peakRSS() (int64, error) { return statusBytes("VmHWM:") }
