package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// ReconcilerOptions configures a Reconciler. Server, Tracker and Selection are required. Run calls the
// functions one at a time and without holding a lock.
type ReconcilerOptions struct {
	// Server serves the types from informers of its factory.
	Server *Server
	// Tracker provides the types of the cluster. It must be running.
	Tracker *discovery.Tracker
	// Selection selects the types.
	Selection *discovery.Selection
	// InformerOptions returns the informer options of a type and its indexes. Indexes of the options are
	// ignored. Default: all objects, no indexes.
	InformerOptions func(discovery.Resource) (dynamicinformer.ResourceOptions, []*indexers.Index)
	// Metrics returns the metrics of a type, for MetricSources. Optional.
	Metrics func(discovery.Resource) []*indexers.Metric
	// Exclude returns an error to skip a selected type. Types that match a pattern or category are skipped
	// silently. Optional.
	Exclude func(discovery.Resource) error
	// OnServed and OnDropped are called when serving of a type starts and ends. Optional.
	OnServed, OnDropped func(discovery.Resource)
	// OnRejected is called when a name cannot be resolved to a cacheable type, and again when the reason
	// changes. Optional.
	OnRejected func(name string, why error)
}

// Reconciler serves the selected types of a cluster from a Server. It follows types that are installed or
// removed. Create it with NewReconciler and start it with Run. It is safe for concurrent use.
type Reconciler struct {
	options ReconcilerOptions
	changed chan struct{}

	mu struct {
		sync.Mutex
		types    map[schema.GroupResource]*CachedType
		problems map[string]error
		// reconciled is set after the first reconciliation with a complete list of types.
		reconciled bool
	}
}

// CachedType is a type that is served from the cache.
type CachedType struct {
	discovery.Resource
	Informer *dynamicinformer.Informer
	// Indexes are the indexes for queries.
	Indexes []*indexers.Index

	metrics []*indexers.Metric
	handle  *dynamicinformer.Handle
}

// NewReconciler returns a Reconciler. The error describes missing options.
func NewReconciler(options ReconcilerOptions) (*Reconciler, error) {
	if options.Server == nil || options.Tracker == nil || options.Selection == nil {
		return nil, errors.New("live: Server, Tracker and Selection are required")
	}
	if options.InformerOptions == nil {
		options.InformerOptions = func(discovery.Resource) (o dynamicinformer.ResourceOptions,
			_ []*indexers.Index) {
			return o, nil
		}
	}
	if options.Metrics == nil {
		options.Metrics = func(discovery.Resource) []*indexers.Metric { return nil }
	}
	if options.Exclude == nil {
		options.Exclude = func(discovery.Resource) error { return nil }
	}
	if options.OnServed == nil {
		options.OnServed = func(discovery.Resource) {}
	}
	if options.OnDropped == nil {
		options.OnDropped = func(discovery.Resource) {}
	}
	if options.OnRejected == nil {
		options.OnRejected = func(string, error) {}
	}
	r := &Reconciler{options: options, changed: make(chan struct{}, 1)}
	r.mu.types = map[schema.GroupResource]*CachedType{}
	return r, nil
}

// Run reconciles until ctx ends. The types are served until the factory ends. Call it once.
func (r *Reconciler) Run(ctx context.Context) {
	subscription := r.options.Tracker.Subscribe(func(discovery.Event) { r.wake() })
	defer subscription.Stop()
	if r.options.Tracker.WaitForSync(ctx) != nil {
		return // ctx has ended
	}
	for {
		var again <-chan time.Time
		if r.reconcile() {
			again = time.After(staleDiscoveryPause)
		}
		select {
		case <-r.changed:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// wake requests a reconciliation.
func (r *Reconciler) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Types returns the served types by group and resource.
func (r *Reconciler) Types() []CachedType {
	r.mu.Lock()
	defer r.mu.Unlock()
	types := make([]CachedType, 0, len(r.mu.types))
	for _, cached := range r.mu.types {
		types = append(types, *cached)
	}
	slices.SortFunc(types, func(a, b CachedType) int {
		return cmp.Or(cmp.Compare(a.GVR.Group, b.GVR.Group), cmp.Compare(a.GVR.Resource, b.GVR.Resource))
	})
	return types
}

// Type returns a served type in any version, or false.
func (r *Reconciler) Type(gr schema.GroupResource) (CachedType, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cached := r.mu.types[gr]; cached != nil {
		return *cached, true
	}
	return CachedType{}, false
}

// MetricSources returns the metrics of the served types with their caches, for indexers.ReadMetrics.
func (r *Reconciler) MetricSources() []indexers.MetricSource {
	var sources []indexers.MetricSource
	for _, t := range r.Types() {
		if len(t.metrics) > 0 {
			snapshot := query.ForInformer(t.Informer).Snapshot()
			sources = append(sources, query.MetricSource(t.GVR, t.metrics, snapshot))
		}
	}
	return sources
}

// Problems returns an error for each name of the selection that cannot be resolved to a cacheable type, and
// for each type that cannot be served.
func (r *Reconciler) Problems() map[string]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.mu.problems)
}

// Reconciled reports whether the types of the cluster are known, so that Types is complete.
func (r *Reconciler) Reconciled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.reconciled
}

// staleDiscoveryPause is the interval of reconciliations while discovery fails for some groups. Its recovery
// is not a change of types and causes no notification. Tests set it.
var staleDiscoveryPause = 30 * time.Second

// reconcile serves exactly the selected types of the cluster. It returns true if discovery failed for some
// types.
func (r *Reconciler) reconcile() (doubtful bool) {
	desired, problems, doubtful := r.desired(r.options.Tracker.Snapshot().Catalog())
	for _, current := range r.Types() {
		gr := current.GVR.GroupResource()
		resource, ok := desired[gr]
		if ok && resource.GVR == current.GVR && resource.Scope == current.Scope {
			delete(desired, gr)
			continue
		}
		if !ok {
			r.options.Server.RemoveType(gr)
		}
		current.handle.Release()
		r.set(gr, nil)
		r.options.OnDropped(current.Resource)
	}
	for _, gr := range slices.SortedFunc(maps.Keys(desired),
		func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }) {
		resource := desired[gr]
		served, err := r.acquire(resource)
		if err != nil {
			r.options.Server.RemoveType(gr)
			problems[resource.String()] = err
			continue
		}
		r.set(gr, served)
		r.options.OnServed(resource)
	}
	r.mu.Lock()
	before := r.mu.problems
	r.mu.problems, r.mu.reconciled = problems, true
	r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		if previous := before[name]; previous == nil || previous.Error() != problems[name].Error() {
			r.options.OnRejected(name, problems[name])
		}
	}
	return doubtful
}

// desired returns the selected cacheable types, and the errors for other selected names. doubtful is true if
// discovery failed for some selected types.
func (r *Reconciler) desired(catalog *discovery.Catalog) (types map[schema.GroupResource]discovery.Resource,
	problems map[string]error, doubtful bool) {
	types = map[schema.GroupResource]discovery.Resource{}
	selected, problems := r.options.Selection.Types(catalog)
	for _, s := range selected {
		gr := s.GVR.GroupResource()
		err := r.options.Exclude(s.Resource)
		if err == nil && !s.Watchable() {
			err = fmt.Errorf("%s cannot be listed and watched", s.Resource)
		}
		_, served := r.Type(gr)
		switch {
		case err != nil && !s.FromPattern:
			problems[s.Name] = err
		case err != nil:
		case s.FromPattern && s.Stale && s.CRDUID == "" && !served:
			doubtful = true
		default:
			types[gr] = s.Resource
		}
	}
	return types, problems, doubtful
}

func (r *Reconciler) acquire(resource discovery.Resource) (*CachedType, error) {
	options, indexes := r.options.InformerOptions(resource)
	metrics, all := r.options.Metrics(resource), slices.Clone(indexes)
	for _, m := range metrics {
		if !slices.ContainsFunc(all, m.Index.Same) {
			all = append(all, m.Index)
		}
	}
	options.Indexes = indexers.CompileIndexes(all...)
	handle, err := r.options.Server.options.Factory.Acquire(resource.GVR, options)
	if err != nil {
		return nil, err
	}
	if err := r.options.Server.AddType(handle.Informer(), indexes...); err != nil {
		handle.Release()
		return nil, err
	}
	return &CachedType{resource, handle.Informer(), indexes, metrics, handle}, nil
}

func (r *Reconciler) set(gr schema.GroupResource, t *CachedType) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t == nil {
		delete(r.mu.types, gr)
		return
	}
	r.mu.types[gr] = t
}
