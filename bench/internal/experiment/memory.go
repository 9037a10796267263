package experiment

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

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
func peakRSS() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("the peak of resident memory is only known on Linux: %w", err)
	}
	return parsePeakRSS(status)
}

func parsePeakRSS(status []byte) (int64, error) {
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == "VmHWM:" && string(fields[2]) == "kB" {
			kilobytes, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("there is no VmHWM in the status of the process")
}
