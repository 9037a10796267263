package experiment

import (
	"runtime"
	"time"
)

// Cost is what one call of an operation costs on average.
type Cost struct {
	// CPU is processor time in nanoseconds, with the share of the garbage collection that it causes.
	CPU float64
	// Allocations and Bytes are what is allocated.
	Allocations, Bytes float64
}

// Operation calls f again and again for as much processor time as budget, and at least once. f gets the number
// of the call.
func Operation(budget time.Duration, f func(n int) error) (Cost, error) {
	if err := tryOut(budget, f); err != nil {
		return Cost{}, err
	}
	runtime.GC()
	bytes, objects := Allocated()
	before, err := ProcessCPU()
	if err != nil {
		return Cost{}, err
	}
	calls := 0
	spent := time.Duration(0)
	for batch := 1; spent < budget; batch = min(2*batch, 1<<14) {
		for range batch {
			if err := f(calls); err != nil {
				return Cost{}, err
			}
			calls++
		}
		now, err := ProcessCPU()
		if err != nil {
			return Cost{}, err
		}
		spent = now - before
	}
	bytesAfter, objectsAfter := Allocated()
	return Cost{
		CPU:         float64(spent) / float64(calls),
		Allocations: float64(objectsAfter-objects) / float64(calls),
		Bytes:       float64(bytesAfter-bytes) / float64(calls),
	}, nil
}

// tryOut calls f a few times, or once where that takes long, so that what happens only once is not measured, as
// the filling of pools.
func tryOut(budget time.Duration, f func(n int) error) error {
	before, err := ProcessCPU()
	if err != nil {
		return err
	}
	for n := range 3 {
		if err := f(n); err != nil {
			return err
		}
		if now, err := ProcessCPU(); err != nil || now-before > budget {
			return err
		}
	}
	return nil
}
