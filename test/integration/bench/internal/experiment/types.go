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
	check(err)
	configs, types := []*rest.Config{server}, TypesOf(task.Objects)
	if task.Experiment != Types {
		configs, types = clusterConfigs(server, task.Objects), TypesOf(ClusterTypes)
	}
	caches := len(configs) * len(types)
	if task.Profile != "" {
		runtime.MemProfileRate = 256 // the profile increases the measured memory
	}
	before := takeFootprint()
	watch := startStopwatch()
	fleet, err := newFleet(task.Subject, configs, types, nil)
	check(err)
	check(fleet.Sync(ctx, func() {}))
	cpu, wall := watch.Elapsed()
	if objects := fleet.Len(); objects != caches*task.PerType {
		return Outcome{}, fmt.Errorf("the caches have %d objects, want %d", objects, caches*task.PerType)
	}
	peak := peakRSS()
	idle := idleShare(ctx, task.Idle)
	after := takeFootprint()
	check(writeHeapProfile(task.Profile))
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
func idleShare(ctx context.Context, during time.Duration) float64 {
	check(pause(ctx, idlePause))
	watch := startStopwatch()
	check(pause(ctx, during))
	cpu, wall := watch.Elapsed()
	return cpu.Seconds() / wall.Seconds()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
