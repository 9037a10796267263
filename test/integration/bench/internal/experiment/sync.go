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
	f := fillCache(ctx, func() Cache { return newCache(task, NoHandler, nil) })
	if f.objects != task.Objects {
		return Outcome{}, fmt.Errorf("the cache has %d objects, want %d", f.objects, task.Objects)
	}
	metrics := map[string]float64{
		CPU:           f.cpu.Seconds(),
		CPUPerObject:  f.cpu.Seconds() * 1e6 / float64(f.objects),
		Wall:          f.wall.Seconds(),
		HeapPerObject: float64(f.heap) / float64(f.objects),
		PeakRSS:       float64(f.peak),
		PeakPerLive:   float64(f.peak-f.idle) / float64(f.heap),
	}
	measureContent(f, metrics)
	return Outcome{Metrics: metrics}, nil
}

// measureContent measures cold reads, and compares the peak with the JSON of the objects, if the cache
// permits that.
func measureContent(f fillCost, metrics map[string]float64) {
	if s, ok := f.cache.(*sharedInformer); ok && s.jsonBytes != nil {
		length, err := s.jsonBytes()
		check(err)
		if length == 0 {
			return // nothing is stored
		}
		metrics[PeakPerJSON] = float64(f.peak) / float64(length)
	}
	if r, ok := f.cache.(Reader); ok {
		keys := r.Keys()
		slices.Sort(keys) // equal for all subjects
		metrics[GetCold] = coldGet(r, selectEvenly(keys, coldObjects))
	}
}

// fillCost has the cost of filling a cache, and its memory.
type fillCost struct {
	cache     Cache
	objects   int
	cpu, wall time.Duration
	// heap is the growth of the live heap, idle the resident memory before it, and peak that memory's peak.
	heap, idle, peak int64
}

func fillCache(ctx context.Context, make func() Cache) (f fillCost) {
	before := liveHeap()
	f.idle = statusBytes("VmRSS:")
	watch := startStopwatch()
	cache := make()
	check(cache.Sync(ctx))
	f.cpu, f.wall = watch.Elapsed()
	f.peak = peakRSS()
	f.cache, f.objects = cache, cache.Len()
	check(awaitBackgroundWork(ctx, cache))
	f.heap = liveHeap() - before
	runtime.KeepAlive(cache)
	return f
}

// awaitBackgroundWork waits for background work after a fill, so that it is not attributed to something else.
func awaitBackgroundWork(ctx context.Context, cache Cache) error {
	if s, ok := cache.(*sharedInformer); ok && s.waitForIdle != nil {
		return s.waitForIdle(ctx)
	}
	return nil
}
