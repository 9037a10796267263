package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

var restartTypes = []Type{{GVR: certificates, Kind: certificateKind}}

// RestartChanges is the number of changed objects between two processes.
const RestartChanges = 1_000

// restart fills caches of all the server's types from the server or from persisted objects. With persistence,
// it returns after everything was saved.
func restart(ctx context.Context, task Task, _ func() error) (_ Outcome, err error) {
	config, err := config(task)
	check(err)
	var received atomic.Int64
	config.Dial = countingDialer(&received)
	watch := startStopwatch()
	subject := task.Subject
	var persisted persistence.Backend
	if task.Folder != "" {
		store := disk.New(task.Folder, disk.Options{})
		defer func() { err = errors.Join(err, store.Close(ctx)) }()
		subject, persisted = Packed, store
	}
	fleet, err := newFleet(subject, []*rest.Config{config}, restartTypes, persisted)
	check(err)
	defer func() { err = errors.Join(err, fleet.Close(ctx)) }()
	var readable time.Duration
	check(fleet.Sync(ctx, func() { readable = time.Since(watch.wall) }))
	cpu, wall := watch.Elapsed()
	bytes := received.Load()
	if objects := fleet.Len(); objects != task.Objects {
		return Outcome{}, fmt.Errorf("the caches have %d objects, want %d", objects, task.Objects)
	}
	if total := len(restartTypes); task.Resumes && fleet.Resumed() != total {
		return Outcome{}, fmt.Errorf("%d of %d caches were restored", fleet.Resumed(), total)
	}
	return Outcome{Metrics: map[string]float64{
		CPU: cpu.Seconds(), Wall: wall.Seconds(), Readable: readable.Seconds(), Received: float64(bytes),
	}}, nil
}
