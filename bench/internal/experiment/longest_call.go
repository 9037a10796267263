package experiment

import (
	"sync/atomic"
	"time"
)

// longestCall calls read without end on a goroutine of its own while f runs, and returns how long f and the
// longest of those calls took. On a busy machine a call may also wait for a processor, so this is the most
// that f can have kept a reader waiting.
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
				o.longest = 0 // the first call may fill something
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
