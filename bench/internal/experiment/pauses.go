package experiment

import (
	"math"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// longestPause returns the approximate longest pause by the garbage collector: the upper end of its histogram
// bucket.
func longestPause() time.Duration {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := sample[0].Value.Float64Histogram()
	for i := len(h.Counts) - 1; i >= 0; i-- {
		if h.Counts[i] == 0 {
			continue
		}
		end := h.Buckets[i+1]
		if math.IsInf(end, 1) {
			end = h.Buckets[i]
		}
		return time.Duration(end * float64(time.Second))
	}
	return 0
}

// readInterval is a pause between reads that makes their cost negligible.
const readInterval = 20 * time.Millisecond

// longestCall calls read with pauses on its own goroutine while f runs. It returns the duration of f and of
// the longest call. A call may also wait for a CPU, so the result is an upper bound of the time that f
// blocked a reader.
func longestCall(pause time.Duration, read func(n int) error, f func() error) (took, longest time.Duration,
	err error) {
	var stop atomic.Bool
	warm := make(chan struct{})
	type outcome struct {
		longest time.Duration
		err     error
	}
	done := make(chan outcome, 1)
	go func() { // ends when stop is set
		var o outcome
		for n := 0; !stop.Load() && o.err == nil; n++ {
			if n == 1 {
				close(warm)
				o.longest = 0 // the first call may fill caches
			}
			start := time.Now()
			o.err = read(n)
			o.longest = max(o.longest, time.Since(start))
			time.Sleep(pause)
		}
		done <- o
	}()
	var early outcome
	select {
	case <-warm:
	case early = <-done:
		return 0, 0, early.err
	}
	start := time.Now()
	err = f()
	took = time.Since(start)
	stop.Store(true)
	o := <-done
	if err == nil {
		err = o.err
	}
	return took, o.longest, err
}
