package experiment

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/crdcache/crdcache/bench/internal/subject"
)

// NoWatchList is the environment variable by which client-go's reflectors, which all informers have, list.
const NoWatchList = "KUBE_FEATURE_WatchListClient=false"

// syncCache fills a cache without handlers.
func syncCache(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	f, err := fillCache(ctx, func() (subject.Cache, error) { return newCache(task, subject.NoHandler, nil) })
	if err != nil {
		return Outcome{}, err
	}
	if f.objects != task.Objects {
		return Outcome{}, fmt.Errorf("the cache has %d objects, want %d", f.objects, task.Objects)
	}
	return Outcome{Metrics: map[string]float64{
		CPU:           f.cpu.Seconds(),
		CPUPerObject:  f.cpu.Seconds() * 1e6 / float64(f.objects),
		Wall:          f.wall.Seconds(),
		HeapPerObject: float64(f.heap) / float64(f.objects),
		PeakRSS:       float64(f.peak),
	}}, nil
}

// filling is what it took to fill a cache, and what that keeps.
type filling struct {
	objects   int
	cpu, wall time.Duration
	// heap is what is live beyond what was before, peak the most memory that the process has had resident.
	heap, peak int64
}

// fillCache makes a cache and fills it.
func fillCache(ctx context.Context, make func() (subject.Cache, error)) (f filling, err error) {
	before := liveHeap()
	watch, err := startStopwatch()
	if err != nil {
		return f, err
	}
	cache, err := make()
	if err != nil {
		return f, err
	}
	if err := cache.Sync(ctx); err != nil {
		return f, err
	}
	if f.cpu, f.wall, err = watch.Elapsed(); err != nil {
		return f, err
	}
	if f.peak, err = peakRSS(); err != nil {
		return f, err
	}
	f.objects = cache.Len()
	if err := comeToRest(ctx, cache); err != nil {
		return f, err
	}
	f.heap = liveHeap() - before
	runtime.KeepAlive(cache)
	return f, nil
}

// comeToRest returns when a cache is as it will be at rest, so that what it does behind a fill is not
// counted as something else.
func comeToRest(ctx context.Context, cache subject.Cache) error {
	if s, ok := cache.(subject.Settler); ok {
		return s.Settle(ctx)
	}
	return nil
}
