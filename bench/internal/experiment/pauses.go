package experiment

import (
	"math"
	"runtime/metrics"
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

// readInterval is the time between two reads of longestReadOf. It is long enough to make their cost
// negligible.
const readInterval = 20 * time.Millisecond

// longestReadOf calls read periodically on its own goroutine while f runs, and returns the duration of the
// longest call.
func longestReadOf(read func(n int) error, f func() error) (time.Duration, error) {
	stop := make(chan struct{})
	type outcome struct {
		longest time.Duration
		err     error
	}
	done := make(chan outcome, 1)
	go func() { // ends when stop is closed
		var o outcome
		ticker := time.NewTicker(readInterval)
		defer ticker.Stop()
		for n := 0; o.err == nil; n++ {
			start := time.Now()
			o.err = read(n)
			o.longest = max(o.longest, time.Since(start))
			select {
			case <-ticker.C:
				continue
			case <-stop:
			}
			break
		}
		done <- o
	}()
	err := f()
	close(stop)
	o := <-done
	if err == nil {
		err = o.err
	}
	return o.longest, err
}
