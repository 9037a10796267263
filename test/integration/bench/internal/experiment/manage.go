//go:build !nextkubernetes

package experiment

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"runtime"
	"sync"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/go-logr/logr"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// manage runs a manager with one controller until each object has been reconciled with one Get. An operator
// then receives updates.
func manage(ctx context.Context, task Task, ready func() error) (Outcome, error) {
	if task.Subject == Stream {
		return measureUpdates(ctx, task, ready)
	}
	before := liveHeap()
	watch := startStopwatch()
	reconciled := newReconciledCount(task.Objects)
	updates := newEventTimes(task.Events)
	manager := newManager(task, reconciled, updates)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ends with ctx
	select {
	case <-reconciled.complete:
	case err := <-ended:
		return Outcome{}, fmt.Errorf("the manager ended after %d objects: %w", reconciled.count(), err)
	}
	if task.Experiment == Operator {
		reconciled.awaitIdle()
	}
	cpu, wall := watch.Elapsed()
	peak := peakRSS()
	heap := liveHeap() - before
	var outcome Outcome
	if task.Events > 0 {
		outcome = updates.receive(ctx, task, ready)
	}
	runtime.KeepAlive(manager)
	metrics := map[string]float64{
		CPU:           cpu.Seconds(),
		Wall:          wall.Seconds(),
		HeapPerObject: float64(heap) / float64(task.Objects),
		PeakRSS:       float64(peak),
	}
	maps.Copy(metrics, outcome.Metrics)
	outcome.Metrics = metrics
	return outcome, nil
}

// newManager returns a manager with the task's cache and a controller.
func newManager(task Task, reconciled *reconciledCount, updates *eventTimes) ctrl.Manager {
	config, err := config(task)
	check(err)
	// Without a logger, controller-runtime keeps the loggers of all reconciliations.
	ctrl.SetLogger(logr.Discard())
	scheme := k8sruntime.NewScheme()
	check(certmanagerv1.AddToScheme(scheme))
	options := ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		// Like most operators.
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		// Otherwise the client reads unstructured objects from the API server.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	}
	switch task.Subject {
	case CrdcacheManager:
		options.NewCache = controllerruntime.NewCache
	case CompressedManager:
		options.NewCache = controllerruntime.NewCacheFunc(controllerruntime.Options{
			Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageCompressed,
				Compression: s2.New()},
		})
	}
	if task.Experiment == Operator {
		setOperatorOptions(task, &options)
	}
	manager, err := ctrl.NewManager(config, options)
	check(err)
	object := func() client.Object { return managedObject(task.Experiment) }
	controller := ctrl.NewControllerManagedBy(manager).Named("bench")
	if task.Experiment == Operator {
		controller.For(object(), builder.WithPredicates(updateRecorder{times: updates},
			predicate.GenerationChangedPredicate{})).Owns(&owned[first]{}).Owns(&owned[second]{})
	} else {
		controller.For(object())
	}
	check(controller.Complete(
		reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			if err := manager.GetClient().Get(ctx, request.NamespacedName, object()); err != nil {
				return reconcile.Result{}, err
			}
			reconciled.add(request.String())
			return reconcile.Result{}, nil
		})))
	return manager
}

// managedObject returns an empty object in the form that the experiment reads.
func managedObject(experiment string) client.Object {
	if experiment == ManageTyped || experiment == Operator {
		return &certmanagerv1.Certificate{}
	}
	return exampleOf(Type{certificates, certificateKind}.kind())
}

// reconciledCount counts the reconciled objects. It stores their hashes to use little memory.
type reconciledCount struct {
	complete  chan struct{} // closed after the last object
	wantCount int
	seed      maphash.Seed

	mu struct {
		sync.Mutex
		seen  map[uint64]struct{}
		total int
	}
}

func newReconciledCount(want int) *reconciledCount {
	t := &reconciledCount{complete: make(chan struct{}), wantCount: want, seed: maphash.MakeSeed()}
	t.mu.seen = make(map[uint64]struct{}, want)
	return t
}

func (t *reconciledCount) add(key string) {
	hash := maphash.String(t.seed, key)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.total++
	before := len(t.mu.seen)
	t.mu.seen[hash] = struct{}{}
	if before < t.wantCount && len(t.mu.seen) == t.wantCount {
		close(t.complete)
	}
}

// awaitIdle waits until nothing was reconciled for a second.
func (t *reconciledCount) awaitIdle() {
	for before := -1; ; time.Sleep(time.Second) {
		t.mu.Lock()
		total := t.mu.total
		t.mu.Unlock()
		if total == before {
			return
		}
		before = total
	}
}

func (t *reconciledCount) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.seen)
}
