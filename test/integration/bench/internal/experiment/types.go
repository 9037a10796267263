package experiment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TypesGroup and TypesVersion are the group and version of the types that TypesOf returns.
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

// ClusterTypes is the number of types of each of many clusters.
const ClusterTypes = 20

// ClusterPath returns the path below which the server of experiments with many clusters has a cluster.
func ClusterPath(n int) string { return fmt.Sprintf("/cluster-%d", n) }

// clusterConfigs returns a config for each cluster. The clusters share no connection.
func clusterConfigs(server *rest.Config, count int) []*rest.Config {
	configs := make([]*rest.Config, count)
	for n := range configs {
		configs[n] = rest.CopyConfig(server)
		configs[n].Host += ClusterPath(n)
		configs[n].Dial = (&net.Dialer{}).DialContext // client-go shares the transports of equal configs
	}
	return configs
}

// measureTypes fills caches of many types and measures the cost, the used memory, and the idle cost while
// only bookmarks arrive.
func measureTypes(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	server, err := config(task)
	if err != nil {
		return Outcome{}, err
	}
	configs, types := []*rest.Config{server}, TypesOf(task.Objects)
	if task.Experiment != Types {
		configs, types = clusterConfigs(server, task.Objects), TypesOf(ClusterTypes)
	}
	caches := len(configs) * len(types)
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
	fleet, err := newFleet(task.Subject, configs, types, nil)
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
	if objects := fleet.Len(); objects != caches*task.PerType {
		return Outcome{}, fmt.Errorf("the caches have %d objects, want %d", objects, caches*task.PerType)
	}
	peak, err := peakRSS()
	if err != nil {
		return Outcome{}, err
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
	memory := float64(after.memory() - before.memory())
	metrics := map[string]float64{
		CPU:             cpu.Seconds(),
		Wall:            wall.Seconds(),
		PeakRSS:         float64(peak),
		TypeMemory:      memory / float64(caches),
		TypeGoroutines:  float64(after.goroutines-before.goroutines) / float64(caches),
		MemoryPerObject: memory / float64(caches*task.PerType),
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
