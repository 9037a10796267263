package experiment

import (
	"context"
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
	cache := newCache(task, KeyHandler, s.recordKey)
	reader, ok := cache.(Reader)
	if !ok {
		return Outcome{}, fmt.Errorf("%s cannot be read", task.Subject)
	}
	s.reader = reader
	s.fill(ctx)
	s.receiveUpdates(ctx, ready)
	s.measureRelist(ctx, ready)
	if task.Subject != NotStored {
		s.measureReads()
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

func (s *scaleMeasurement) fill(ctx context.Context) {
	before := liveHeap()
	watch := startStopwatch()
	check(s.reader.Sync(ctx))
	cpu, _ := watch.Elapsed()
	if objects := s.reader.Len(); objects != s.task.Objects {
		check(fmt.Errorf("the cache has %d objects, want %d", objects, s.task.Objects))
	}
	s.metrics[CPUPerObject] = s.perObject(cpu)
	s.metrics[HeapPerObject] = float64(liveHeap()-before) / float64(s.task.Objects)
}

// perObject converts a duration to microseconds per object.
func (s *scaleMeasurement) perObject(d time.Duration) float64 {
	return d.Seconds() * 1e6 / float64(s.task.Objects)
}

func (s *scaleMeasurement) receiveUpdates(ctx context.Context, ready func() error) {
	watch := startStopwatch()
	s.awaitEvents(ctx, s.updates, ready)
	cpu, _ := watch.Elapsed()
	s.metrics[CPUPerEvent] = cpu.Seconds() * 1e6 / float64(s.task.Events)
}

// awaitEvents reports ready and waits until the handler has seen everything.
func (s *scaleMeasurement) awaitEvents(ctx context.Context, events *eventTimes, ready func() error) {
	s.current.Store(events)
	defer s.current.Store(nil)
	events.await(ctx, ready)
}

// measureRelist measures a relist, and its peak memory relative to the memory before it.
func (s *scaleMeasurement) measureRelist(ctx context.Context, ready func() error) {
	rest := takeFootprint()
	check(os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // resets peakRSS
	watch := startStopwatch()
	s.awaitEvents(ctx, s.relist, ready)
	cpu, _ := watch.Elapsed()
	s.metrics[RelistPeak] = float64(peakRSS()) / float64(rest.resident)
	s.metrics[RelistCPU] = s.perObject(cpu)
}

// measureReads adds an index, and reads by it and in other ways.
func (s *scaleMeasurement) measureReads() {
	r := &readMeasurement{reader: s.reader, budget: s.task.Budget, metrics: s.metrics, keys: s.reader.Keys()}
	slices.Sort(r.keys)
	r.measureIndexAdd()
	s.metrics[IndexAddPerObject] = s.metrics[IndexAdd] * 1e3 / float64(s.task.Objects)
	r.measureGets()
	r.measureNamespace()
	r.measureIndexReads()
}
