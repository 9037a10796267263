package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// footprint has the memory and the goroutines of a process.
type footprint struct {
	heap, stack int64 // bytes in use
	// kernel is the approximate memory of the kernel for connections, in bytes.
	kernel     int64
	resident   int64 // resident memory in bytes
	goroutines int
}

// collections is the number of garbage collections in takeFootprint. Each one halves the stacks that are
// mostly unused.
const collections = 5

// socketSize is the approximate size of the kernel's structures for an idle TCP connection and its file.
const socketSize = 4 << 10

// takeFootprint measures this process after garbage collection.
func takeFootprint() footprint {
	for range collections {
		runtime.GC()
	}
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	f := footprint{heap: int64(stats.HeapAlloc), stack: int64(stats.StackInuse),
		goroutines: runtime.NumGoroutine(), resident: statusBytes("VmRSS:")}
	files, _ := filepath.Glob("/proc/self/fd/*") // the pattern is valid
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && strings.HasPrefix(target, "socket:") {
			f.kernel += socketSize
		}
	}
	return f
}

// memory returns the heap, the stacks and the kernel's memory.
func (f footprint) memory() int64 { return f.heap + f.stack + f.kernel }

// statusBytes returns a field of this process's status. It panics on systems other than Linux.
func statusBytes(name string) int64 {
	status, err := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == name && string(fields[2]) == "kB" {
			if kilobytes, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				return kilobytes << 10
			}
		}
	}
	panic(fmt.Sprintf("there is no %s in the status of the process, which is only known on Linux: %v", name, err))
}
