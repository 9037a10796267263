package experiment

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// NoWatchList is the environment variable that makes client-go's reflectors list.
const NoWatchList = "KUBE_FEATURE_WatchListClient=false"

// syncCache fills a cache without handlers.
func syncCache(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	f, err := fillCache(ctx, func() (Cache, error) { return newCache(task, NoHandler, nil) })
	if err != nil {
		return Outcome{}, err
	}
	if f.objects != task.Objects {
		return Outcome{}, fmt.Errorf("the cache has %d objects, want %d", f.objects, task.Objects)
	}
	metrics := map[string]float64{
		CPU:           f.cpu.Seconds(),
		CPUPerObject:  f.cpu.Seconds() * 1e6 / float64(f.objects),
		Wall:          f.wall.Seconds(),
		HeapPerObject: float64(f.heap) / float64(f.objects),
		PeakRSS:       float64(f.peak),
	}
	return Outcome{Metrics: metrics}, measureContent(f, metrics)
}

// measureContent measures cold reads, and compares the peak with the JSON of the objects, if the cache
// permits that.
func measureContent(f fillCost, metrics map[string]float64) error {
	if s, ok := f.cache.(*sharedInformer); ok && s.jsonBytes != nil {
		length, err := s.jsonBytes()
		if err != nil || length == 0 { // nothing is stored
			return err
		}
		metrics[PeakPerJSON] = float64(f.peak) / float64(length)
	}
	r, ok := f.cache.(Reader)
	if !ok {
		return nil
	}
	keys := r.Keys()
	slices.Sort(keys) // equal for all subjects
	var err error
	metrics[GetCold], err = coldGet(r, selectEvenly(keys, coldObjects))
	return err
}

// fillCost has the cost of filling a cache, and its memory.
type fillCost struct {
	cache     Cache
	objects   int
	cpu, wall time.Duration
	// heap is the growth of the live heap, peak the peak of resident memory.
	heap, peak int64
}

func fillCache(ctx context.Context, make func() (Cache, error)) (f fillCost, err error) {
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
	f.cache, f.objects = cache, cache.Len()
	if err := awaitBackgroundWork(ctx, cache); err != nil {
		return f, err
	}
	f.heap = liveHeap() - before
	runtime.KeepAlive(cache)
	return f, nil
}

// awaitBackgroundWork waits for background work after a fill, so that it is not attributed to something else.
func awaitBackgroundWork(ctx context.Context, cache Cache) error {
	if s, ok := cache.(*sharedInformer); ok && s.waitForIdle != nil {
		return s.waitForIdle(ctx)
	}
	return nil
}
