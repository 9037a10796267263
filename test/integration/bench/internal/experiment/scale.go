package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// scaleCache fills a cache, receives updates, relists, adds an index and reads. It measures the cost of each
// per object. It is ready twice: before the updates, and before the end of its watch.
func scaleCache(ctx context.Context, task Task, ready func() error) (Outcome, error) {
	s := &scaleMeasurement{task: task, metrics: map[string]float64{}, updates: newEventTimes(task.Events),
		relist: newEventTimes(1)}
	cache, err := newCache(task, KeyHandler, s.recordKey)
	if err != nil {
		return Outcome{}, err
	}
	reader, ok := cache.(Reader)
	if !ok {
		return Outcome{}, fmt.Errorf("%s cannot be read", task.Subject)
	}
	s.reader = reader
	for _, step := range []func() error{
		func() error { return s.fill(ctx) },
		func() error { return s.receiveUpdates(ctx, ready) },
		func() error { return s.measureRelist(ctx, ready) },
		s.measureReads,
	} {
		if err := step(); err != nil {
			return Outcome{}, err
		}
	}
	runtime.KeepAlive(cache)
	return Outcome{Metrics: s.metrics, Seen: s.updates.times()}, nil
}

// scaleMeasurement is the state of scaleCache.
type scaleMeasurement struct {
	task    Task
	reader  Reader
	metrics map[string]float64

	updates, relist *eventTimes
	current         atomic.Pointer[eventTimes] // receives the handler's calls, unless nil
}

// recordKey is called by the handler. During the relist, it records only the last object.
func (s *scaleMeasurement) recordKey(key string) {
	current := s.current.Load()
	if current == nil || current == s.relist && key != s.task.Last {
		return
	}
	current.record(key)
}

func (s *scaleMeasurement) fill(ctx context.Context) error {
	before := liveHeap()
	watch, err := startStopwatch()
	if err != nil {
		return err
	}
	if err := s.reader.Sync(ctx); err != nil {
		return err
	}
	cpu, _, err := watch.Elapsed()
	if err != nil {
		return err
	}
	if objects := s.reader.Len(); objects != s.task.Objects {
		return fmt.Errorf("the cache has %d objects, want %d", objects, s.task.Objects)
	}
	s.metrics[CPUPerObject] = s.perObject(cpu)
	s.metrics[HeapPerObject] = float64(liveHeap()-before) / float64(s.task.Objects)
	return nil
}

// perObject converts a duration to microseconds per object.
func (s *scaleMeasurement) perObject(d time.Duration) float64 {
	return d.Seconds() * 1e6 / float64(s.task.Objects)
}

func (s *scaleMeasurement) receiveUpdates(ctx context.Context, ready func() error) error {
	watch, err := startStopwatch()
	if err != nil {
		return err
	}
	if err := s.awaitEvents(ctx, s.updates, ready); err != nil {
		return err
	}
	cpu, _, err := watch.Elapsed()
	s.metrics[CPUPerEvent] = cpu.Seconds() * 1e6 / float64(s.task.Events)
	return err
}

// awaitEvents reports ready and waits until the handler has seen everything.
func (s *scaleMeasurement) awaitEvents(ctx context.Context, events *eventTimes, ready func() error) error {
	events.begin()
	s.current.Store(events)
	defer s.current.Store(nil)
	if err := ready(); err != nil {
		return err
	}
	select {
	case <-events.complete:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(updatesTimeout):
		return errors.New("timeout before all updates: " + events.String())
	}
}

// measureRelist measures a relist, and its peak memory relative to the memory before it.
func (s *scaleMeasurement) measureRelist(ctx context.Context, ready func() error) error {
	rest, err := takeFootprint()
	if err != nil {
		return err
	}
	if err := resetPeak(); err != nil {
		return err
	}
	watch, err := startStopwatch()
	if err != nil {
		return err
	}
	if err := s.awaitEvents(ctx, s.relist, ready); err != nil {
		return err
	}
	cpu, _, err := watch.Elapsed()
	if err != nil {
		return err
	}
	peak, err := peakRSS()
	s.metrics[RelistPeak] = float64(peak) / float64(rest.resident)
	s.metrics[RelistCPU] = s.perObject(cpu)
	return err
}

// measureReads adds an index, and reads by it and in other ways.
func (s *scaleMeasurement) measureReads() error {
	r := &readMeasurement{reader: s.reader, budget: s.task.Budget, metrics: s.metrics, keys: s.reader.Keys()}
	slices.Sort(r.keys)
	if err := r.measureIndexAdd(); err != nil {
		return err
	}
	s.metrics[IndexAddPerObject] = s.metrics[IndexAdd] * 1e3 / float64(s.task.Objects)
	for _, step := range []func() error{r.measureGets, r.measureNamespace, r.measureIndexReads} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// resetPeak resets the peak of peakRSS.
func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
