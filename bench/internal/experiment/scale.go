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

	"github.com/crdcache/crdcache/bench/internal/subject"
)

// scaleCache fills a cache, follows updates, lists again, adds an index and reads, and measures what each
// of these costs for an object, so that it shows whether more objects make any of it dearer. It is ready
// twice: for the updates, and for its watch to end.
func scaleCache(ctx context.Context, task Task, ready func() error) (Outcome, error) {
	s := &scaling{task: task, metrics: map[string]float64{}, updates: newSightings(task.Events),
		relist: newSightings(1)}
	cache, err := newCache(task, subject.KeyHandler, s.see)
	if err != nil {
		return Outcome{}, err
	}
	reader, ok := cache.(subject.Reader)
	if !ok {
		return Outcome{}, fmt.Errorf("%s cannot be read", task.Subject)
	}
	s.reader = reader
	for _, step := range []func() error{
		func() error { return s.fill(ctx) },
		func() error { return s.follow(ctx, ready) },
		func() error { return s.listAgain(ctx, ready) },
		s.read,
	} {
		if err := step(); err != nil {
			return Outcome{}, err
		}
	}
	s.metrics[GCPause] = longestPause().Seconds() * 1e3
	runtime.KeepAlive(cache)
	return Outcome{Metrics: s.metrics, Seen: s.updates.times()}, nil
}

// scaling is the state of scaleCache.
type scaling struct {
	task    Task
	reader  subject.Reader
	metrics map[string]float64

	updates, relist *sightings
	current         atomic.Pointer[sightings] // where the handler's calls go; nil: nowhere
}

// see is what the handler calls. Of what a list brings only the last object counts, which all others come
// before.
func (s *scaling) see(key string) {
	current := s.current.Load()
	if current == nil || current == s.relist && key != s.task.Last {
		return
	}
	current.see(key)
}

// fill fills the cache.
func (s *scaling) fill(ctx context.Context) error {
	before := liveHeap()
	watch, err := startStopwatch()
	if err != nil {
		return err
	}
	if err := s.reader.Sync(ctx); err != nil {
		return err
	}
	cpu, wall, err := watch.Elapsed()
	if err != nil {
		return err
	}
	peak, err := peakRSS()
	if err != nil {
		return err
	}
	if objects := s.reader.Len(); objects != s.task.Objects {
		return fmt.Errorf("the cache has %d objects, want %d", objects, s.task.Objects)
	}
	s.metrics[CPU], s.metrics[Wall], s.metrics[PeakRSS] = cpu.Seconds(), wall.Seconds(), float64(peak)
	s.metrics[CPUPerObject] = s.perObject(cpu)
	s.metrics[HeapPerObject] = float64(liveHeap()-before) / float64(s.task.Objects)
	return nil
}

// perObject is how many microseconds a time is for each object.
func (s *scaling) perObject(d time.Duration) float64 {
	return d.Seconds() * 1e6 / float64(s.task.Objects)
}

// follow follows updates.
func (s *scaling) follow(ctx context.Context, ready func() error) error {
	watch, err := startStopwatch()
	if err != nil {
		return err
	}
	if err := s.await(ctx, s.updates, ready); err != nil {
		return err
	}
	cpu, _, err := watch.Elapsed()
	s.metrics[CPUPerEvent] = cpu.Seconds() * 1e6 / float64(s.task.Events)
	return err
}

// await says that the child is ready, and returns when all that is to be seen then has been.
func (s *scaling) await(ctx context.Context, what *sightings, ready func() error) error {
	what.begin()
	s.current.Store(what)
	defer s.current.Store(nil)
	if err := ready(); err != nil {
		return err
	}
	select {
	case <-what.complete:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(updatesTimeout):
		return errors.New("the updates did not come: " + what.String())
	}
}

// listAgain measures a list of everything into the filled cache, with the memory that it takes beyond what
// the cache keeps at rest, and the longest of reads meanwhile.
func (s *scaling) listAgain(ctx context.Context, ready func() error) error {
	read := s.someRead() // whose list of keys is none of the cache's memory
	rest, err := takeFootprint()
	if err != nil {
		return err
	}
	if err := forgetPeak(); err != nil {
		return err
	}
	watch, err := startStopwatch()
	if err != nil {
		return err
	}
	var cpu, wall time.Duration
	longest, err := longestReadOf(read, func() error {
		if err := s.await(ctx, s.relist, ready); err != nil {
			return err
		}
		var err error
		cpu, wall, err = watch.Elapsed()
		return err
	})
	if err != nil {
		return err
	}
	peak, err := peakRSS()
	if err != nil {
		return err
	}
	s.metrics[RestRSS] = float64(rest.resident) / float64(s.task.Objects)
	s.metrics[RelistPeak] = float64(peak) / float64(rest.resident)
	s.metrics[RelistCPU], s.metrics[RelistWall] = s.perObject(cpu), wall.Seconds()
	s.metrics[RelistRead] = longest.Seconds() * 1e3
	return nil
}

// someRead returns a read of one of a few objects.
func (s *scaling) someRead() func(n int) error {
	keys := spread(s.reader.Keys(), hotObjects)
	return func(n int) error {
		_, err := s.reader.Get(keys[n%len(keys)])
		return err
	}
}

// read adds an index, and reads by it and in other ways.
func (s *scaling) read() error {
	r := &reading{reader: s.reader, budget: s.task.Budget, metrics: s.metrics, keys: s.reader.Keys()}
	slices.Sort(r.keys)
	if err := r.addIndex(); err != nil {
		return err
	}
	s.metrics[IndexAddPerObject] = s.metrics[IndexAdd] * 1e3 / float64(s.task.Objects)
	for _, step := range []func() error{r.gets, r.namespaces, r.lookups} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// forgetPeak has peakRSS tell of what comes.
func forgetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
