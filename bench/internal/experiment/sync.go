package experiment

import (
	"context"
	"fmt"
	"runtime"

	"github.com/crdcache/crdcache/bench/internal/subject"
)

// NoWatchList is the environment variable by which client-go's reflectors, which all informers have, list.
const NoWatchList = "KUBE_FEATURE_WatchListClient=false"

// syncCache fills a cache without handlers.
func syncCache(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	before := liveHeap()
	watch, err := startStopwatch()
	if err != nil {
		return Outcome{}, err
	}
	cache, err := newCache(task, subject.NoHandler, nil)
	if err != nil {
		return Outcome{}, err
	}
	if err := cache.Sync(ctx); err != nil {
		return Outcome{}, err
	}
	cpu, wall, err := watch.Elapsed()
	if err != nil {
		return Outcome{}, err
	}
	peak, err := peakRSS()
	if err != nil {
		return Outcome{}, err
	}
	objects := cache.Len()
	if objects != task.Objects {
		return Outcome{}, fmt.Errorf("the cache has %d objects, want %d", objects, task.Objects)
	}
	if s, ok := cache.(subject.Settler); ok {
		if err := s.Settle(ctx); err != nil {
			return Outcome{}, err
		}
	}
	heap := liveHeap() - before
	runtime.KeepAlive(cache)
	return Outcome{Metrics: map[string]float64{
		CPU:           cpu.Seconds(),
		CPUPerObject:  cpu.Seconds() * 1e6 / float64(objects),
		Wall:          wall.Seconds(),
		HeapPerObject: float64(heap) / float64(objects),
		PeakRSS:       float64(peak),
	}}, nil
}
