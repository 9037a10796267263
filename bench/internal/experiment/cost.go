package experiment

import (
	"runtime"
	"time"
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
