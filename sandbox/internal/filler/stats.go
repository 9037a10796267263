package filler

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Kinds of operations.
const (
	opUpdate = "update"
	opCreate = "create"
	opDelete = "delete"
	opMissed = "missed" // the object was gone already
)

// ChurnResult summarises a run.
type ChurnResult struct {
	Updates, Creates, Deletes int
	// Missed operations met an object that was deleted in the meantime.
	Missed int
	// Errors counts failed operations; FirstError is one of them.
	Errors     int
	FirstError error
	Elapsed    time.Duration
	// P50 and P99 are latencies of successful operations; a create counts
	// both of its requests.
	P50, P99 time.Duration
}

// String is the summary for people.
func (r ChurnResult) String() string {
	done := r.Updates + r.Creates + r.Deletes
	return fmt.Sprintf("%d updates, %d creates, %d deletes, %d missed, %d errors in %.1fs: %.0f/s, p50 %s, p99 %s",
		r.Updates, r.Creates, r.Deletes, r.Missed, r.Errors, r.Elapsed.Seconds(),
		float64(done)/r.Elapsed.Seconds(), r.P50.Round(10*time.Microsecond), r.P99.Round(10*time.Microsecond))
}

// churnStats collects results from many goroutines.
type churnStats struct {
	mu struct {
		sync.Mutex
		counts     map[string]int
		latencies  []time.Duration
		errors     int
		firstError error
	}
}

func newChurnStats() *churnStats {
	s := &churnStats{}
	s.mu.counts = map[string]int{}
	return s
}

func (s *churnStats) count(kind string, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.mu.errors++
		if s.mu.firstError == nil {
			s.mu.firstError = fmt.Errorf("%s: %w", kind, err)
		}
		return
	}
	s.mu.counts[kind]++
	s.mu.latencies = append(s.mu.latencies, took)
}

func (s *churnStats) result(elapsed time.Duration) ChurnResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.mu.latencies)
	return ChurnResult{
		Updates:    s.mu.counts[opUpdate],
		Creates:    s.mu.counts[opCreate],
		Deletes:    s.mu.counts[opDelete],
		Missed:     s.mu.counts[opMissed],
		Errors:     s.mu.errors,
		FirstError: s.mu.firstError,
		Elapsed:    elapsed,
		P50:        quantile(s.mu.latencies, 0.50),
		P99:        quantile(s.mu.latencies, 0.99),
	}
}

// quantile reads from sorted values; it is zero without any.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
