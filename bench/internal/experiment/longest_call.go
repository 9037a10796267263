package experiment

import (
	"sync/atomic"
	"time"
)

// longestCall calls read continuously on its own goroutine while f runs. It returns the duration of f and of
// the longest call. A call may also wait for a CPU, so the result is an upper bound of the time that f
// blocked a reader.
func longestCall(read func(n int) error, f func() error) (took, longest time.Duration, err error) {
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
