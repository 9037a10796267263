package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// measureUpdates fills a cache, reports ready, and measures until the handler has received the task's number
// of updates.
func measureUpdates(ctx context.Context, task Task, ready func() error) (Outcome, error) {
	handler := KeyHandler
	if task.Experiment == UpdatesRead || task.Experiment == BurstRead {
		handler = ReadHandler
	}
	times := newEventTimes(task.Events)
	cache := newCache(task, handler, times.record)
	check(cache.Sync(ctx))
	defer runtime.KeepAlive(cache)
	return times.receive(ctx, task, ready), nil
}

// receive reports ready, and measures until all updates have been received.
func (s *eventTimes) receive(ctx context.Context, task Task, ready func() error) Outcome {
	runtime.GC()
	watch := startStopwatch()
	s.await(ctx, ready)
	cpu, _ := watch.Elapsed()
	return Outcome{
		Metrics: map[string]float64{CPUPerEvent: cpu.Seconds() * 1e6 / float64(task.Events)},
		Seen:    s.times(),
	}
}

// await reports ready, and waits until all updates have been received.
func (s *eventTimes) await(ctx context.Context, ready func() error) {
	s.begin()
	check(ready())
	select {
	case <-s.complete:
	case <-ctx.Done():
		check(fmt.Errorf("waiting for updates: %w", context.Cause(ctx)))
	case <-time.After(updatesTimeout):
		check(errors.New("timeout before all updates: " + s.String()))
	}
}

// updatesTimeout limits the time of all updates.
const updatesTimeout = 3 * time.Minute

// eventTimes has the time of a handler's first call for each key.
type eventTimes struct {
	complete  chan struct{} // closed after the last key
	wantCount int

	mu struct {
		sync.Mutex
		begun bool
		seen  map[string]time.Time
	}
}

func newEventTimes(want int) *eventTimes {
	s := &eventTimes{complete: make(chan struct{}), wantCount: want}
	s.mu.seen = make(map[string]time.Time, want)
	return s
}

// begin discards the initial objects.
func (s *eventTimes) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.begun = true
}

func (s *eventTimes) record(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.begun || len(s.mu.seen) == s.wantCount {
		return
	}
	if _, again := s.mu.seen[key]; again {
		return
	}
	s.mu.seen[key] = time.Now()
	if len(s.mu.seen) == s.wantCount {
		close(s.complete)
	}
}

func (s *eventTimes) times() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.seen
}

func (s *eventTimes) String() string { return fmt.Sprintf("%d of %d", len(s.times()), s.wantCount) }
