package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

var restartTypes = []Type{{GVR: certificates, Kind: certificateKind}}

// RestartChanges is the number of changed objects between two processes.
const RestartChanges = 1_000

// restart fills caches of all the server's types from the server or from persisted objects. With persistence,
// it returns after everything was saved.
func restart(ctx context.Context, task Task, _ func() error) (_ Outcome, err error) {
	config, err := config(task)
	if err != nil {
		return Outcome{}, err
	}
	var received atomic.Int64
	config.Dial = countingDialer(&received)
	watch, err := startStopwatch()
	if err != nil {
		return Outcome{}, err
	}
	fleet, err := restartFleet(task, config)
	if err != nil {
		return Outcome{}, err
	}
	persisted, _ := fleet.(*persistedCaches)
	if persisted != nil {
		defer func() { err = errors.Join(err, persisted.Close(ctx)) }()
	}
	var readable time.Duration
	if err := fleet.Sync(ctx, func() { readable = time.Since(watch.wall) }); err != nil {
		return Outcome{}, err
	}
	cpu, wall, err := watch.Elapsed()
	if err != nil {
		return Outcome{}, err
	}
	bytes := received.Load()
	if objects := fleet.Len(); objects != task.Objects {
		return Outcome{}, fmt.Errorf("the caches have %d objects, want %d", objects, task.Objects)
	}
	if total := len(restartTypes); task.Resumes && persisted.Resumed() != total {
		return Outcome{}, fmt.Errorf("%d of %d caches were restored", persisted.Resumed(), total)
	}
	return Outcome{Metrics: map[string]float64{
		CPU: cpu.Seconds(), Wall: wall.Seconds(), Readable: readable.Seconds(), Received: float64(bytes),
	}}, nil
}

// typeCaches has the caches of all types.
type typeCaches interface {
	Sync(ctx context.Context, readable func()) error
	Len() int
}

// restartFleet returns the caches. For crdcache it is a *persistedCaches, also without persistence.
func restartFleet(task Task, config *rest.Config) (typeCaches, error) {
	if task.Subject == ClientGo {
		return newFleet(task.Subject, []*rest.Config{config}, restartTypes)
	}
	return newPersistedCaches(config, restartTypes, task.Folder)
}
