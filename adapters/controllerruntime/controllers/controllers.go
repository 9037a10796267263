package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// Watch selects events that enqueue requests. Ensure keeps a watch that is deeply equal; functions never are.
type Watch struct {
	Type
	// Handler enqueues requests. Its objects are *unstructured.Unstructured. Default: it enqueues the objects
	// of Settings.For, and for other types their owners of that kind.
	Handler    handler.EventHandler
	Predicates []predicate.Predicate
	// Options have selectors and the fields to store. Watches with equal options share an informer.
	Options dynamicinformer.ResourceOptions
}

// Settings are the settings of a controller. For, whose objects are reconciled, and Reconciler are required.
type Settings struct {
	For        Watch
	Watches    []Watch
	Reconciler reconcile.Reconciler
	// MaxConcurrent is the number of reconciles that run at the same time (default: 1), and RateLimiter
	// delays requests after errors. Those of the first call of Ensure apply until Stop.
	MaxConcurrent int
	RateLimiter   workqueue.TypedRateLimiter[reconcile.Request]
}

// equal avoids reflect.DeepEqual for zero options, for which it is most of the cost of Ensure.
func (w *Watch) equal(other *Watch) bool {
	a, b := reflect.ValueOf(&w.Options).Elem(), reflect.ValueOf(&other.Options).Elem()
	return w.Type == other.Type && reflect.DeepEqual(w.Handler, other.Handler) &&
		reflect.DeepEqual(w.Predicates, other.Predicates) &&
		(a.IsZero() && b.IsZero() || reflect.DeepEqual(w.Options, other.Options))
}

func (s *Settings) equal(other *Settings) bool {
	return s.For.equal(&other.For) && s.MaxConcurrent == other.MaxConcurrent &&
		slices.EqualFunc(s.Watches, other.Watches, func(a, b Watch) bool { return a.equal(&b) }) &&
		reflect.DeepEqual(s.Reconciler, other.Reconciler) &&
		reflect.DeepEqual(s.RateLimiter, other.RateLimiter)
}

// Options configure Controllers. The zero value is usable.
type Options struct {
	// Workers is the number of reconciles that run at the same time, over all controllers. The others take
	// turns in the order in which they wait. Default: no limit.
	Workers int
	// Linger is the time for which the watch of selected objects continues without objects after the last
	// instance of their type. Default: zero.
	Linger time.Duration
}

// Controllers are the controllers of a manager. Create it with New. It is safe for concurrent use.
type Controllers struct {
	options Options
	factory *dynamicinformer.Factory
	// slots has an element for each running reconcile; nil without a limit.
	slots chan struct{}

	mu          sync.Mutex
	ctx         context.Context // of Start; nil before it
	controllers map[string]*running
	parts       map[Type]*part
	feeds       map[*feed]bool
	types       map[schema.GroupKind]typesource.Type // also those that the server has deleted since

	lists sync.WaitGroup // the lists of new selections
}

// New adds controllers to a manager, which runs them while it is the leader. Its cache must be a
// *controllerruntime.Cache.
func New(m manager.Manager, options Options) (*Controllers, error) {
	cache, ok := m.GetCache().(*controllerruntime.Cache)
	if !ok {
		return nil, fmt.Errorf("controllers: the cache of the manager is a %T: set ctrl.Options.NewCache to controllerruntime.NewCache", m.GetCache())
	}
	c := &Controllers{options: options, factory: cache.Factory(), controllers: map[string]*running{},
		parts: map[Type]*part{}, feeds: map[*feed]bool{}, types: map[schema.GroupKind]typesource.Type{}}
	if options.Workers > 0 {
		c.slots = make(chan struct{}, options.Workers)
	}
	return c, m.Add(c)
}

// Start runs the controllers until ctx ends, and returns when no reconcile is running.
func (c *Controllers) Start(ctx context.Context) (err error) {
	c.mu.Lock()
	c.ctx = ctx
	for _, k := range c.controllers {
		err = errors.Join(err, k.apply(c))
	}
	c.mu.Unlock()
	types, failure := c.observeTypes()
	if err = errors.Join(err, failure); err == nil {
		<-ctx.Done()
		types.Close()
	}
	for _, s := range c.All() {
		err = errors.Join(err, c.Stop(context.WithoutCancel(ctx), s.Name))
	}
	c.lists.Wait()
	return err
}

// Ensure starts a controller, or changes a running one: its queue and its unchanged watches continue, and a
// new watch enqueues requests for all of its objects. It waits for nothing. Types may be installed later;
// when a type is deleted, its objects are, too, and its watches start again when it returns.
func (c *Controllers) Ensure(name string, settings Settings) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.controllers[name]
	switch {
	case name == "" || settings.Reconciler == nil || settings.For.Kind == "":
		return fmt.Errorf("controllers: %q: set the name, Settings.For and Settings.Reconciler", name)
	case k != nil && k.ctx.Err() != nil || c.ctx != nil && c.ctx.Err() != nil:
		return fmt.Errorf("controllers: %s is being stopped: wait for Stop", name)
	case k != nil && k.settings.For.GroupKind != settings.For.GroupKind:
		return fmt.Errorf("controllers: %s is for %s: stop it first", name, k.settings.For.GroupKind)
	case k != nil && k.settings.equal(&settings):
		return nil
	case k == nil:
		k = &running{name: name, controllers: c, selections: map[selectionKey][]Objects{},
			selectedTypes: map[types.NamespacedName][]Type{}}
		k.ctx, k.cancel = context.WithCancel(context.Background())
		c.controllers[name] = k
	}
	k.settings = settings
	if c.ctx == nil {
		return nil
	}
	return k.apply(c)
}

// Stop stops a controller: it cancels its reconciles and waits for them. If ctx ends first, Stop returns its
// cause, and can be called again. It does nothing for an unknown name.
func (c *Controllers) Stop(ctx context.Context, name string) error {
	c.mu.Lock()
	k := c.controllers[name]
	if k == nil {
		c.mu.Unlock()
		return nil
	}
	stopped := k.stop()
	c.mu.Unlock()
	select {
	case <-stopped:
	case <-ctx.Done():
		return fmt.Errorf("controllers: stop %s: %w", name, context.Cause(ctx))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.controllers[name] == k {
		delete(c.controllers, name)
	}
	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// running is one of Controllers, whose mu guards the fields without synchronization.
type running struct {
	controllers  *Controllers
	name         string
	settings     Settings
	watches      []*watch
	ctx          context.Context
	cancel       context.CancelFunc
	queue        queue         // nil before Controllers.Start
	ended        chan struct{} // closed when no reconcile is running
	reconciler   atomic.Pointer[reconcile.Reconciler]
	lastError    atomic.Pointer[error]
	slots        chan struct{}
	forKind      schema.GroupKind // of Settings.For
	isNamespaced atomic.Bool      // its scope
	// selections has the selected objects of each instance, and selectedTypes their types.
	selections    map[selectionKey][]Objects
	selectedTypes map[types.NamespacedName][]Type
}

// apply makes the watches equal to the settings, and starts the controller.
func (k *running) apply(c *Controllers) (err error) {
	k.reconciler.Store(&k.settings.Reconciler)
	if k.queue == nil {
		if err = k.start(c); err != nil {
			return err
		}
	}
	previous := k.watches
	k.watches = nil
	for n, w := range append([]Watch{k.settings.For}, k.settings.Watches...) {
		equal := func(p *watch) bool { return p.isFor == (n == 0) && p.Watch.equal(&w) }
		if i := slices.IndexFunc(previous, equal); i >= 0 {
			k.watches, previous = append(k.watches, previous[i]), slices.Delete(previous, i, i+1)
			continue
		}
		added, failure := k.newWatch(c.factory, w, n == 0)
		if err = errors.Join(err, failure); failure == nil {
			k.watches = append(k.watches, added)
		}
	}
	for _, w := range previous {
		w.subscription.Close()
	}
	return err
}

func (k *running) start(c *Controllers) error {
	k.slots, k.forKind, k.ended = c.slots, k.settings.For.GroupKind, make(chan struct{})
	// Metrics of a name remain after its controller, so all have one name, and the queues none.
	inner, err := controller.NewTypedUnmanaged("run-time", controller.TypedOptions[reconcile.Request]{
		Reconciler: k, MaxConcurrentReconciles: k.settings.MaxConcurrent, RateLimiter: k.settings.RateLimiter,
		SkipNameValidation: new(true), Logger: log.Log.WithValues("settings", k.name),
		NewQueue: func(string, workqueue.TypedRateLimiter[reconcile.Request]) queue { return k.queue },
	})
	if err != nil {
		return err
	}
	k.queue = priorityqueue.New("", func(o *priorityqueue.Opts[reconcile.Request]) {
		o.RateLimiter, o.Log = k.settings.RateLimiter, log.Log
	})
	go func() { defer close(k.ended); _ = inner.Start(k.ctx) }() // ended by stop
	return nil
}

// stop ends the controller. The channel is closed when no reconcile is running.
func (k *running) stop() <-chan struct{} {
	k.cancel()
	for s := range k.selections {
		k.setSelectionLocked(s, nil)
	}
	for _, w := range k.watches {
		w.subscription.Close()
	}
	if k.watches = nil; k.ended == nil {
		k.ended = make(chan struct{})
		close(k.ended)
	}
	return k.ended
}

func (k *running) Reconcile(ctx context.Context, request reconcile.Request) (r reconcile.Result, err error) {
	if k.slots != nil {
		select {
		case k.slots <- struct{}{}:
			defer func() { <-k.slots }()
		case <-ctx.Done():
			return r, nil // the queue is shut down
		}
	}
	r, err = (*k.reconciler.Load()).Reconcile(ctx, request)
	k.lastError.Store(&err)
	return r, err
}

// Status is the status of a controller.
type Status struct {
	Name string
	// Ready is a condition for the status of an object, without times. It is true while all watches work. The
	// other reasons are Waiting (a type is not installed, not served, or must not be read, or another replica
	// is the leader), Syncing (a first list is under way) and Stopping. Watches do not wait for each other.
	Ready       metav1.Condition
	QueueLength int   // without delayed requests
	LastError   error // of the last reconcile
}

// Status returns the status of a controller. ok is false if there is none of this name.
func (c *Controllers) Status(name string) (s Status, ok bool) {
	all := c.All()
	i := slices.IndexFunc(all, func(s Status) bool { return s.Name == name })
	if i < 0 {
		return s, false
	}
	return all[i], true
}

// All returns the status of all controllers, ordered by name.
func (c *Controllers) All() (all []Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.controllers)) {
		k := c.controllers[name]
		s := Status{Name: name, Ready: metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse}}
		s.Ready.Reason, s.Ready.Message = k.readinessLocked()
		if s.Ready.Reason == "Running" {
			s.Ready.Status = metav1.ConditionTrue
		}
		if err := k.lastError.Load(); err != nil {
			s.LastError = *err
		}
		if k.queue != nil {
			s.QueueLength = k.queue.Len()
		}
		all = append(all, s)
	}
	return all
}

// readinessLocked returns the reason and the message of Status.Ready.
func (k *running) readinessLocked() (reason, message string) {
	switch {
	case k.ctx.Err() != nil:
		return "Stopping", ""
	case k.controllers.ctx == nil:
		return "Waiting", "this replica is not the leader"
	}
	reason = "Running"
	for _, w := range k.watches {
		problem, isSyncing := w.problem()
		switch message += problem; {
		case problem != "" && !isSyncing:
			reason = "Waiting"
		case isSyncing && reason == "Running":
			reason = "Syncing"
		}
	}
	return reason, message
}

type watch struct {
	Watch
	isFor        bool
	subscription *dynamicinformer.Subscription
	err          atomic.Pointer[error]
}

func (k *running) newWatch(factory *dynamicinformer.Factory, settings Watch, isFor bool) (w *watch,
	err error) {
	w = &watch{Watch: settings, isFor: isFor}
	h, selects := settings.Handler, predicate.And(settings.Predicates...)
	if h == nil && isFor {
		h = &handler.EnqueueRequestForObject{}
	} else if h == nil {
		h = handler.EnqueueRequestsFromMapFunc(k.owners)
	}
	h = handler.WithLowPriorityWhenUnchanged(h)
	w.subscription, err = factory.Subscribe(dynamicinformer.Selection{
		Group: settings.Group, Version: settings.Version, Resource: "*",
		Match: func(t typesource.Type) bool {
			if t.Kind == settings.Kind && isFor {
				k.isNamespaced.Store(t.Namespaced)
			}
			return t.Kind == settings.Kind
		},
	}, dynamicinformer.Subscriber{
		OnAdd: func(_ schema.GroupVersionResource, object *unstructured.Unstructured, isInitial bool) {
			if e := (event.CreateEvent{Object: object, IsInInitialList: isInitial}); selects.Create(e) {
				h.Create(k.ctx, e, k.queue)
			}
		},
		OnUpdate: func(_ schema.GroupVersionResource, before, after *unstructured.Unstructured) {
			if e := (event.UpdateEvent{ObjectOld: before, ObjectNew: after}); selects.Update(e) {
				h.Update(k.ctx, e, k.queue)
			}
		},
		OnDelete: func(_ schema.GroupVersionResource, object *unstructured.Unstructured, isFinal bool) {
			if isFor {
				k.controllers.Unselect(k.name, client.ObjectKeyFromObject(object))
			}
			if e := (event.DeleteEvent{Object: object, DeleteStateUnknown: !isFinal}); selects.Delete(e) {
				h.Delete(k.ctx, e, k.queue)
			}
		},
		OnError: func(_ schema.GroupVersionResource, err error) { w.err.Store(&err) },
	}, settings.Options)
	return w, err
}

// owners returns requests for the owners of the kind of Settings.For.
func (k *running) owners(_ context.Context, object client.Object) (requests []reconcile.Request) {
	for _, owner := range object.GetOwnerReferences() {
		group, _ := schema.ParseGroupVersion(owner.APIVersion) // the API server has validated it
		if group.WithKind(owner.Kind).GroupKind() != k.forKind {
			continue
		}
		name := types.NamespacedName{Name: owner.Name}
		if k.isNamespaced.Load() {
			name.Namespace = object.GetNamespace()
		}
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}

// problem returns why the watch does not work yet, or "". isSyncing is true during the first list.
func (w *watch) problem() (message string, isSyncing bool) {
	followed := w.subscription.Types()
	if len(followed) > 0 {
		current := followed[0].Status
		if current.State == status.Synced {
			return "", false
		}
		isSyncing = current.State == status.Syncing || current.State == status.Resuming
		return current.String() + "; ", isSyncing && !current.Settled()
	}
	if err := w.err.Load(); err != nil {
		return fmt.Sprintf("%s: %v; ", w.GroupKind, *err), false
	}
	return w.GroupKind.String() + " is not installed; ", false
}
