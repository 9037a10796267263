//go:build !nextkubernetes

package experiment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/controllerruntime/controllers"
)

// sharedPrefix is the prefix of the namespaces of shared types' objects in requests.
const sharedPrefix = "shared:"

// benchController reconciles the objects of one type. An object of a shared type enqueues one controller.
type benchController struct {
	*controllerBench
	index int
	own   Type
	watch handler.EventHandler // of shared types
}

type controllerBench struct {
	types      []Type // the shared ones are last
	reconciled *reconciledCount
	updates    *eventTimes
	blocked    <-chan struct{} // blocks the first controller, unless it is nil
}

func (c *benchController) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	if name, isShared := strings.CutPrefix(r.String(), sharedPrefix); isShared {
		c.updates.record(name)
		return reconcile.Result{}, nil
	}
	c.reconciled.add(c.own.Kind + "/" + r.String())
	if c.index == 0 && c.blocked != nil {
		select {
		case <-c.blocked:
		case <-ctx.Done():
		}
	}
	return reconcile.Result{}, nil
}

func (c *benchController) requests(_ context.Context, o client.Object) []reconcile.Request {
	n := 0
	_, _ = fmt.Sscanf(o.GetName(), "object-%x", &n)  // all have such names
	if c.index != 1+n%(len(c.types)-SharedTypes-1) { // the first controller may be blocked
		return nil
	}
	name := types.NamespacedName{Namespace: sharedPrefix + o.GetNamespace(), Name: o.GetName()}
	return []reconcile.Request{{NamespacedName: name}}
}

// runtimeSettings returns the settings of the controller for package controllers.
func (c *benchController) runtimeSettings() controllers.Settings {
	watch := func(t Type, h handler.EventHandler) controllers.Watch {
		return controllers.Watch{Type: controllers.Type{GroupKind: t.kind().GroupKind()}, Handler: h}
	}
	s := controllers.Settings{For: watch(c.own, nil), Reconciler: c}
	for _, t := range c.types[len(c.types)-SharedTypes:] {
		s.Watches = append(s.Watches, watch(t, c.watch))
	}
	return s
}

// startStock runs the controller with controller-runtime alone.
func (c *benchController) startStock(ctx context.Context, m ctrl.Manager) {
	started, err := controller.NewUnmanaged(c.own.Kind, controller.Options{Reconciler: c})
	check(err)
	check(started.Watch(source.Kind[client.Object](m.GetCache(), exampleOf(c.own.kind()),
		&handler.EnqueueRequestForObject{})))
	for _, t := range c.types[len(c.types)-SharedTypes:] {
		check(started.Watch(source.Kind[client.Object](m.GetCache(), exampleOf(t.kind()), c.watch)))
	}
	go func() { _ = started.Start(ctx) }() // ended by ctx
}

// measureControllers measures the memory of idle controllers, then the latency of updates of a shared type.
// Of package controllers, it also measures unchanged calls, and a stop during updates.
func measureControllers(ctx context.Context, task Task, ready func() error) (Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &controllerBench{types: TypesOf(task.Objects + SharedTypes), updates: newEventTimes(task.Events)}
	want := task.Objects * task.PerType
	if task.Subject == BlockedManager {
		b.blocked, want = ctx.Done(), want-task.PerType+1
	}
	b.reconciled = newReconciledCount(want)
	manager, all := b.startManager(ctx, task)
	check(pause(ctx, idlePause))
	before := takeFootprint()
	settings := make([]controllers.Settings, task.Objects)
	for n := range settings {
		c := &benchController{controllerBench: b, index: n, own: b.types[n]}
		c.watch = handler.EnqueueRequestsFromMapFunc(c.requests)
		if settings[n] = c.runtimeSettings(); all == nil {
			c.startStock(ctx, manager)
		} else {
			check(all.Ensure(ctx, c.own.Kind, settings[n]))
		}
	}
	<-b.reconciled.complete
	b.reconciled.awaitIdle()
	check(pause(ctx, 4*idlePause)) // goroutines of handlers end
	full := takeFootprint()
	check(writeHeapProfile(task.Profile))
	outcome := b.updates.receive(ctx, task, ready)
	outcome.Metrics[ControllerMemory] = float64(full.memory()-before.memory()) / float64(task.Objects)
	outcome.Metrics[ControllerGoroutines] = float64(full.goroutines-before.goroutines) / float64(task.Objects)
	if task.Subject != CrdcacheManager {
		return outcome, nil
	}
	b.measureCalls(ctx, task, all, settings, outcome.Metrics)
	stopAll := func() {
		start := time.Now()
		for _, t := range b.types[:task.Objects] {
			check(all.Stop(ctx, t.Kind))
		}
		outcome.Metrics[StopTime] = time.Since(start).Seconds()
		check(pause(ctx, 2*idlePause))
	}
	stopAll()
	once := takeFootprint() // with memory that Go and libraries retain, such as ended goroutines
	for n, s := range settings {
		check(all.Ensure(ctx, b.types[n].Kind, s))
	}
	check(pause(ctx, 2*idlePause))
	check(ready()) // more updates
	stopAll()
	left := takeFootprint()
	outcome.Metrics[LeftGoroutines] = float64(left.goroutines - once.goroutines)
	outcome.Metrics[LeftHeap] = 100 * float64(left.heap-once.heap) / float64(once.heap)
	return outcome, nil
}

// startManager starts a manager, with package controllers unless its cache is controller-runtime's.
func (b *controllerBench) startManager(ctx context.Context, task Task) (manager ctrl.Manager,
	all *controllers.Controllers) {
	config, err := config(task)
	check(err)
	ctrl.SetLogger(logr.Discard())
	types := servedTypes(b.types)
	options := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, MapperProvider: types.mapper}
	if task.Subject != ControllerRuntimeManager {
		options.NewCache = controllerruntime.NewCacheFunc(controllerruntime.Options{Types: types})
	}
	manager, err = ctrl.NewManager(config, options)
	check(err)
	if options.NewCache != nil {
		all, err = controllers.New(manager, controllers.Options{Workers: 50})
		check(err)
	}
	go func() { _ = manager.Start(ctx) }() // ended by ctx
	return manager, all
}

// measureCalls measures calls of Ensure and Select that change nothing.
func (b *controllerBench) measureCalls(ctx context.Context, task Task, all *controllers.Controllers,
	settings []controllers.Settings, metrics map[string]float64) {
	metrics[EnsureCost] = averageCost(task.Budget, func(n int) error {
		n %= task.Objects
		return all.Ensure(ctx, b.types[n].Kind, settings[n])
	})
	absent := controllers.Type{GroupKind: schema.GroupKind{Group: "absent.example.com", Kind: "Absent"}}
	selected := []controllers.Objects{{Labels: labels.SelectorFromSet(labels.Set{"team": "a"})}}
	metrics[SelectCost] = averageCost(task.Budget, func(n int) error {
		return all.Select(b.types[n%task.Objects].Kind, absent, types.NamespacedName{Name: "a"}, selected...)
	})
}
