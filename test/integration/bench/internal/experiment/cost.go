package experiment

import (
	"errors"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// averageCost calls f repeatedly until the CPU time exceeds budget, and at least once. f gets the number
// of the call. averageCost returns the average CPU time of a call in nanoseconds, with the garbage collection
// that the calls cause.
func averageCost(budget time.Duration, f func(n int) error) float64 {
	warmUp(budget, f)
	runtime.GC()
	before := cpuTime()
	calls := 0
	spent := time.Duration(0)
	for batch := 1; spent < budget; batch = min(2*batch, 1<<14) {
		for range batch {
			check(f(calls))
			calls++
		}
		spent = cpuTime() - before
	}
	return float64(spent) / float64(calls)
}

// warmUp calls f a few times, or once if it is slow, so that one-time costs are not measured.
func warmUp(budget time.Duration, f func(n int) error) {
	before := cpuTime()
	for n := 0; n < 3 && cpuTime()-before <= budget; n++ {
		check(f(n))
	}
}

// averageColdCost calls f exactly count times after garbage collection, without the warm-up of averageCost. f
// gets the number of the call. It returns the average CPU time in nanoseconds.
func averageColdCost(count int, f func(n int) error) float64 {
	runtime.GC()
	runtime.GC()
	before := cpuTime()
	for n := range count {
		check(f(n))
	}
	return float64(cpuTime()-before) / float64(count)
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

// peakRSS returns the peak of resident memory in bytes since the start of the program. getrusage is
// unsuitable, because a process inherits the peak of its parent there.
func peakRSS() int64 { return statusBytes("VmHWM:") }

// cpuTime returns the user and system time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // Linux reports it
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// stopwatch measures CPU time and elapsed time since its start.
type stopwatch struct {
	cpu  time.Duration
	wall time.Time
}

func startStopwatch() stopwatch { return stopwatch{cpu: cpuTime(), wall: time.Now()} }

// Elapsed returns the times since the start.
func (s stopwatch) Elapsed() (cpu, wall time.Duration) { return cpuTime() - s.cpu, time.Since(s.wall) }

// longestCall calls read repeatedly on its own goroutine while f runs. It returns the duration of f and of
// the longest call. A call may also wait for a CPU, so the result is an upper bound of the time that f
// blocked a reader.
func longestCall(read func(n int) error, f func() error) (cost, longest time.Duration, err error) {
	var stop atomic.Bool
	warm := make(chan struct{})
	ended := make(chan error, 1)
	go func() { // ends when stop is set
		var err error
		for n := 0; !stop.Load() && err == nil; n++ {
			if n == 1 {
				close(warm)
				longest = 0 // the first call may fill caches
			}
			start := time.Now()
			err = read(n)
			longest = max(longest, time.Since(start))
		}
		ended <- err
	}()
	select {
	case <-warm:
	case err := <-ended:
		return 0, 0, err
	}
	start := time.Now()
	err = f()
	cost = time.Since(start)
	stop.Store(true)
	err = errors.Join(err, <-ended) // from then on, longest is final
	return cost, longest, err
}
