package experiment

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
)

// footprint is what a process occupies.
type footprint struct {
	heap, stack int64 // bytes in use
	// kernel is the bytes that the kernel holds for its TCP connections.
	kernel     int64
	resident   int64 // bytes of memory that it has, of any kind
	goroutines int
}

// collections is how often takeFootprint collects: each collection halves stacks of which little is in use.
const collections = 5

// takeFootprint measures what is in use after everything unused has been given back.
func takeFootprint() (footprint, error) {
	for range collections {
		runtime.GC()
	}
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	f := footprint{heap: int64(stats.HeapAlloc), stack: int64(stats.StackInuse),
		goroutines: runtime.NumGoroutine()}
	var err error
	if f.resident, err = statusBytes("VmRSS:"); err != nil {
		return f, err
	}
	f.kernel, err = socketMemory()
	return f, err
}

// statusBytes returns a figure of this process's status.
func statusBytes(name string) (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("resident memory is only known on Linux: %w", err)
	}
	return parseStatus(status, name)
}

func parseStatus(status []byte, name string) (int64, error) {
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == name && string(fields[2]) == "kB" {
			kilobytes, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("there is no %s in the status of the process", name)
}
