package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TypesGroup and TypesVersion are the group and version of these types.
const (
	TypesGroup   = "types.example.com"
	TypesVersion = "v1"
)

// TypesOf returns the types of experiments with many types.
func TypesOf(count int) []Type {
	types := make([]Type, count)
	for i := range types {
		types[i] = Type{
			GVR: schema.GroupVersionResource{Group: TypesGroup, Version: TypesVersion,
				Resource: fmt.Sprintf("kind%04ds", i)},
			Kind: fmt.Sprintf("Kind%04d", i),
		}
	}
	return types
}

// measureTypes fills caches of many types and measures the cost, the used memory, and the idle cost while
// only bookmarks arrive.
func measureTypes(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	config, err := config(task)
	if err != nil {
		return Outcome{}, err
	}
	if task.Profile != "" {
		runtime.MemProfileRate = 256 // the profile increases the measured memory
	}
	before, err := takeFootprint()
	if err != nil {
		return Outcome{}, err
	}
	watch, err := startStopwatch()
	if err != nil {
		return Outcome{}, err
	}
	fleet, err := newFleet(task.Subject, config, TypesOf(task.Objects))
	if err != nil {
		return Outcome{}, err
	}
	if err := fleet.Sync(ctx, func() {}); err != nil {
		return Outcome{}, err
	}
	cpu, wall, err := watch.Elapsed()
	if err != nil {
		return Outcome{}, err
	}
	if objects := fleet.Len(); objects != task.Objects*task.PerType {
		return Outcome{}, fmt.Errorf("the caches have %d objects, want %d", objects,
			task.Objects*task.PerType)
	}
	idle, err := idleShare(ctx, task.Idle)
	if err != nil {
		return Outcome{}, err
	}
	after, err := takeFootprint()
	if err != nil {
		return Outcome{}, err
	}
	if err := writeHeapProfile(task.Profile); err != nil {
		return Outcome{}, err
	}
	runtime.KeepAlive(fleet)
	types := float64(task.Objects)
	metrics := map[string]float64{
		CPU:            cpu.Seconds(),
		Wall:           wall.Seconds(),
		TypeMemory:     float64(after.memory()-before.memory()) / types,
		TypeGoroutines: float64(after.goroutines-before.goroutines) / types,
	}
	if task.Idle > 0 {
		metrics[IdleCPU] = 100 * idle
	}
	return Outcome{Metrics: metrics}, nil
}

// writeHeapProfile writes a heap profile, unless prefix is empty.
func writeHeapProfile(prefix string) error {
	if prefix == "" {
		return nil
	}
	file, err := os.Create(prefix + "-heap.pprof")
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(file, 0), file.Close())
}

// idlePause is the pause between the sync and the idle measurement.
const idlePause = 3 * time.Second

// idleShare returns the CPU usage of the process as a share of one CPU.
func idleShare(ctx context.Context, during time.Duration) (float64, error) {
	if err := pause(ctx, idlePause); err != nil {
		return 0, err
	}
	watch, err := startStopwatch()
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, during); err != nil {
		return 0, err
	}
	cpu, wall, err := watch.Elapsed()
	return cpu.Seconds() / wall.Seconds(), err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
