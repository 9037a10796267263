package experiment

import (
	"runtime"
	"time"

	"github.com/crdcache/crdcache/internal/testkit"
)

// callCost is the average cost of one call.
type callCost struct {
	// CPU is CPU time in nanoseconds, including the caused garbage collection.
	CPU float64
	// Allocations and Bytes count allocations.
	Allocations, Bytes float64
}

// costOfOperation calls f repeatedly until the CPU time exceeds budget, and at least once. f gets the number
// of the call.
func costOfOperation(budget time.Duration, f func(n int) error) (callCost, error) {
	if err := warmUp(budget, f); err != nil {
		return callCost{}, err
	}
	runtime.GC()
	bytes, objects := allocations()
	before, err := cpuTime()
	if err != nil {
		return callCost{}, err
	}
	calls := 0
	spent := time.Duration(0)
	for batch := 1; spent < budget; batch = min(2*batch, 1<<14) {
		for range batch {
			if err := f(calls); err != nil {
				return callCost{}, err
			}
			calls++
		}
		now, err := cpuTime()
		if err != nil {
			return callCost{}, err
		}
		spent = now - before
	}
	return average(calls, spent, bytes, objects), nil
}

// warmUp calls f a few times, or once if it is slow, so that one-time costs are not measured.
func warmUp(budget time.Duration, f func(n int) error) error {
	before, err := cpuTime()
	if err != nil {
		return err
	}
	for n := range 3 {
		if err := f(n); err != nil {
			return err
		}
		if now, err := cpuTime(); err != nil || now-before > budget {
			return err
		}
	}
	return nil
}

// costOfCalls calls f exactly count times without a trial. f gets the number of the call.
func costOfCalls(count int, f func(n int) error) (callCost, error) {
	bytes, objects := allocations()
	before, err := cpuTime()
	if err != nil {
		return callCost{}, err
	}
	for n := range count {
		if err := f(n); err != nil {
			return callCost{}, err
		}
	}
	after, err := cpuTime()
	if err != nil {
		return callCost{}, err
	}
	return average(count, after-before, bytes, objects), nil
}

// average returns the average cost of the latest calls. bytes and objects are the allocations before them.
func average(calls int, spent time.Duration, bytes, objects uint64) callCost {
	bytesAfter, objectsAfter := allocations()
	return callCost{
		CPU:         float64(spent) / float64(calls),
		Allocations: float64(objectsAfter-objects) / float64(calls),
		Bytes:       float64(bytesAfter-bytes) / float64(calls),
	}
}

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

// cpuTime returns the user and system time of this process so far.
func cpuTime() (time.Duration, error) { return testkit.CPUTime() }

// stopwatch measures CPU time and elapsed time since its start.
type stopwatch struct {
	cpu  time.Duration
	wall time.Time
}

func startStopwatch() (stopwatch, error) {
	cpu, err := cpuTime()
	return stopwatch{cpu: cpu, wall: time.Now()}, err
}

// Elapsed returns the times since the start.
func (s stopwatch) Elapsed() (cpu, wall time.Duration, err error) {
	wall = time.Since(s.wall)
	cpu, err = cpuTime()
	return cpu - s.cpu, wall, err
}
