package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
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
	Options *dynamicinformer.ResourceOptions
	isFor   bool // Settings.For
}

// Settings are the settings of a controller. For, whose objects are reconciled, and Reconciler are required.
type Settings struct {
	For        Watch
	Watches    []Watch
	Reconciler reconcile.Reconciler
	// MaxConcurrent is the number of reconciles that run at the same time (default: the manager's, or 1), and
	// RateLimiter delays requests after errors. The limiter of the first call of Ensure applies until Stop.
	MaxConcurrent int
	RateLimiter   workqueue.TypedRateLimiter[reconcile.Request]
}

func (w Watch) equal(other Watch) bool { return w.isAlike(other) && same(w.Options, other.Options) }

// isAlike compares all fields but Options.
func (w Watch) isAlike(other Watch) bool {
	return w.Type == other.Type && w.isFor == other.isFor && same(w.Handler, other.Handler) &&
		(len(w.Predicates)+len(other.Predicates) == 0 || reflect.DeepEqual(w.Predicates, other.Predicates))
}

// equal ignores RateLimiter, which does not change.
func (s *Settings) equal(other *Settings) bool {
	return s.For.equal(other.For) && slices.EqualFunc(s.Watches, other.Watches, Watch.equal) &&
		s.MaxConcurrent == other.MaxConcurrent && same(s.Reconciler, other.Reconciler)
}

// same reports whether values are deeply equal. It does not follow equal pointers, which saves an allocation.
func same(a, b any) bool {
	t := reflect.TypeOf(a)
	return t != nil && t.Kind() == reflect.Pointer && a == b || reflect.DeepEqual(a, b)
}

// Options configure Controllers. The zero value is usable.
type Options struct {
	// Workers is the number of reconciles that run at the same time, over all controllers. The others take
	// turns in the order in which they wait. Default: 100.
	Workers int
	// Linger is the time for which the watch of selected objects continues without objects after the last
	// instance of their type. Default: zero.
	Linger time.Duration
	// Metrics is the registry for the metrics of the controllers while Start runs. For several managers, add
	// a label with prometheus.WrapRegistererWith. Default: the registry of controller-runtime.
	Metrics prometheus.Registerer
}

// Controllers are the controllers of a manager. Create it with New. It is safe for concurrent use.
type Controllers struct {
	options  Options
	defaults config.Controller // the manager's
	factory  *dynamicinformer.Factory
	queue    *queue

	mu          sync.Mutex
	watchCtx    context.Context // of Warmup or Start; nil before
	ctx         context.Context // of Start; nil before
	controllers map[string]*running
	parts       map[Type]*part
	types       map[schema.GroupKind]typesource.Type // also deleted types

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
		parts: map[Type]*part{}, types: map[schema.GroupKind]typesource.Type{},
		defaults: m.GetControllerOptions()}
	c.options.Metrics = cmp.Or[prometheus.Registerer](options.Metrics, metrics.Registry)
	var err error
	if c.queue, err = newQueue(m, cmp.Or(max(options.Workers, 0), 100), c.reconcile); err != nil {
		return nil, err
	}
	return c, m.Add(c)
}

// Start runs the controllers until ctx ends, and returns when no reconcile is running.
func (c *Controllers) Start(ctx context.Context) error {
	if err := c.options.Metrics.Register(c); err != nil {
		log.FromContext(ctx).Error(err, "Cannot register the metrics of controllers: set Options.Metrics")
	} else {
		defer c.options.Metrics.Unregister(c)
	}
	types, err := c.factory.Subscribe(dynamicinformer.Selection{Group: "*", Resource: "*", Match: c.observeType},
		dynamicinformer.Subscriber{})
	if err != nil {
		return err
	}
	defer types.Close()
	listener, err := c.factory.AddListener(status.Listener{IncarnationSynced: c.enqueueAll,
		IncarnationEnded: func(ended status.Incarnation, _ status.Reason) { c.enqueueAll(ended) }})
	if err != nil {
		return err
	}
	defer listener.Close()
	c.mu.Lock()
	c.ctx = ctx
	c.mu.Unlock()
	defer c.lists.Wait()
	return c.run(ctx)
}

// Warmup runs the watches until ctx ends, if the manager enables warm-up for its controllers. The manager
// calls it before the election.
func (c *Controllers) Warmup(ctx context.Context) error {
	if !ptr.Deref(c.defaults.EnableWarmup, false) {
		return nil
	}
	return c.run(ctx)
}

// run runs the watches.
func (c *Controllers) run(ctx context.Context) (err error) {
	c.mu.Lock()
	c.watchCtx = ctx
	for _, k := range c.controllers {
		err = errors.Join(err, k.apply())
	}
	c.mu.Unlock()
	if err == nil {
		<-ctx.Done()
	}
	for _, s := range c.All() {
		err = errors.Join(err, c.Stop(context.WithoutCancel(ctx), s.Name))
	}
	return err
}

// Ensure starts a controller, or changes a running one: its queue and its unchanged watches continue. A watch
// that changes only in Options receives the difference: see dynamicinformer.Subscription.Change. Any other
// change, also of Handler or Predicates, makes a new watch, which receives the creation of each object. It
// waits only for the end of a controller of this name that is being stopped, until ctx ends. Types may be
// installed later; when a type is deleted, its objects are, too, and its watches start again when it returns.
func (c *Controllers) Ensure(ctx context.Context, name string, settings Settings) error {
	settings.For.isFor = true
	settings.MaxConcurrent = max(1, cmp.Or(settings.MaxConcurrent, c.defaults.MaxConcurrentReconciles))
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.controllers[name]
	for ; k != nil && k.ctx.Err() != nil; k = c.controllers[name] {
		c.mu.Unlock()
		err := c.Stop(ctx, name)
		c.mu.Lock()
		if err != nil {
			return err
		}
	}
	switch {
	case name == "" || settings.Reconciler == nil || settings.For.Kind == "":
		return fmt.Errorf("controllers: %q: set the name, Settings.For and Settings.Reconciler", name)
	case c.watchCtx != nil && c.watchCtx.Err() != nil:
		return fmt.Errorf("controllers: ensure %s: the manager has ended", name)
	case k != nil && k.forKind != settings.For.GroupKind:
		return fmt.Errorf("controllers: %s is for %s: stop it first", name, k.forKind)
	case k != nil && k.applyError == nil && k.settings.Load().equal(&settings):
		return nil
	case k == nil:
		k = &running{name: name, controllers: c, forKind: settings.For.GroupKind,
			reconciling: map[types.NamespacedName]bool{}, reconciles: map[string]uint64{},
			selections: map[types.NamespacedName]sets.Set[Type]{}, ended: make(chan struct{})}
		k.queue = newRequests(k, settings.RateLimiter)
		k.ctx, k.cancel = context.WithCancel(context.Background())
		c.controllers[name] = k
	}
	k.settings.Store(&settings)
	c.queue.mu.Lock()
	k.queue.offerLocked() // a higher MaxConcurrent permits more requests
	c.queue.mu.Unlock()
	if c.watchCtx == nil {
		return nil
	}
	return k.apply()
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

// running is one of Controllers, whose mu guards the fields without synchronization.
type running struct {
	controllers  *Controllers
	name         string
	settings     atomic.Pointer[Settings]
	watches      []*watch
	ctx          context.Context
	cancel       context.CancelFunc
	queue        *requests
	ended        chan struct{}                 // closed after stop, when no reconcile is running
	reconciling  map[types.NamespacedName]bool // running reconciles; true: the instance was deleted meanwhile
	reconciles   map[string]uint64             // the completed ones by result
	lastError    error
	applyError   error                                   // of watches that could not be added
	forKind      schema.GroupKind                        // of Settings.For
	isNamespaced atomic.Bool                             // its scope
	selections   map[types.NamespacedName]sets.Set[Type] // the types of selected objects
}

// apply makes the watches equal to the settings.
func (k *running) apply() (err error) {
	if k.ctx.Err() != nil {
		return nil // it is being stopped
	}
	settings := k.settings.Load()
	previous, wanted := k.watches, append([]Watch{settings.For}, settings.Watches...)
	k.watches = nil
	for _, w := range wanted {
		i := slices.IndexFunc(previous, func(p *watch) bool { return p.equal(w) })
		if i < 0 {
			alike := func(p *watch) bool { return p.isAlike(w) && !slices.ContainsFunc(wanted, p.equal) }
			if i = slices.IndexFunc(previous, alike); i < 0 {
				err = errors.Join(err, k.addWatch(w))
				continue
			}
			previous[i].Options = w.Options
			previous[i].err.Store(nil)
			previous[i].subscription.Change(ptr.Deref(w.Options, dynamicinformer.ResourceOptions{}))
		}
		k.watches = append(k.watches, previous[i])
		previous = slices.Delete(previous, i, i+1)
	}
	for _, w := range previous {
		w.subscription.Close()
	}
	k.applyError = err
	return err
}

// stop ends the controller. The channel is closed when no reconcile is running.
func (k *running) stop() <-chan struct{} {
	if k.ctx.Err() != nil {
		return k.ended
	}
	k.cancel()
	for i := range k.selections {
		k.unselectLocked(i)
	}
	for _, w := range k.watches {
		w.subscription.Close()
	}
	k.watches = nil
	k.queue.queue.mu.Lock()
	for _, x := range k.queue.all { // frees the delayed requests
		if x.timer != nil {
			x.timer.Stop()
		}
	}
	k.queue.queue.mu.Unlock()
	if len(k.reconciling) == 0 {
		close(k.ended)
	}
	return k.ended
}

func (c *Controllers) reconcile(ctx context.Context, i instance) (r reconcile.Result, err error) {
	k := i.controller
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.ctx, cancel)()
	result := "error" // also after a panic
	c.mu.Lock()
	if k.ctx.Err() != nil {
		c.mu.Unlock()
		return r, nil
	}
	k.reconciling[i.name] = false
	c.mu.Unlock()
	err = errors.New("controllers: the reconciler panicked: see the log") // unless it returns
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if k.reconciling[i.name] { // it may have selected objects after the deletion
			k.unselectLocked(i.name)
		}
		delete(k.reconciling, i.name)
		k.reconciles[result]++
		if k.lastError = err; k.ctx.Err() != nil && len(k.reconciling) == 0 {
			close(k.ended)
		}
	}()
	r, err = k.settings.Load().Reconciler.Reconcile(ctx, i.request())
	switch {
	case err != nil:
	case r.RequeueAfter > 0:
		result = "requeue_after"
	case !r.IsZero():
		result = "requeue"
	default:
		result = "success"
	}
	return r, err
}

type watch struct {
	Watch
	subscription *dynamicinformer.Subscription
	err          atomic.Pointer[error]
}

// addWatch adds a watch to watches, unless it fails.
func (k *running) addWatch(settings Watch) (err error) {
	w := &watch{Watch: settings}
	h := settings.Handler
	if h == nil && settings.isFor {
		h = &handler.EnqueueRequestForObject{}
	} else if h == nil {
		h = handler.EnqueueRequestsFromMapFunc(k.owners)
	}
	h = controllerruntime.OnlyMetadata(handler.WithLowPriorityWhenUnchanged(h), settings.Predicates...)
	w.subscription, err = k.controllers.factory.Subscribe(dynamicinformer.Selection{
		Group: settings.Group, Version: settings.Version, Resource: "*",
		Match: func(t typesource.Type) bool {
			if t.Kind == settings.Kind && settings.isFor {
				k.isNamespaced.Store(t.Namespaced)
			}
			return t.Kind == settings.Kind
		},
	}, dynamicinformer.Subscriber{
		OnAdd: func(_ schema.GroupVersionResource, object *unstructured.Unstructured, isInitial bool) {
			h.Create(k.ctx, event.CreateEvent{Object: object, IsInInitialList: isInitial}, k.queue)
		},
		OnUpdate: func(_ schema.GroupVersionResource, before, after *unstructured.Unstructured) {
			h.Update(k.ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, k.queue)
		},
		OnDelete: func(_ schema.GroupVersionResource, object *unstructured.Unstructured, isFinal bool) {
			if settings.isFor {
				k.forget(client.ObjectKeyFromObject(object))
			}
			h.Delete(k.ctx, event.DeleteEvent{Object: object, DeleteStateUnknown: !isFinal}, k.queue)
		},
		OnError: func(_ schema.GroupVersionResource, err error) { w.err.Store(&err) },
	}, ptr.Deref(settings.Options, dynamicinformer.ResourceOptions{}))
	if err == nil {
		k.watches = append(k.watches, w)
	}
	return err
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
