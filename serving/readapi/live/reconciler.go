package live

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
)

// Settings select the types of a Reconciler and configure their caches. Selection is required. The functions
// are called by Run, also when types are installed later. They must always return the same result for the
// same type.
type Settings struct {
	// Selection selects the types.
	Selection *discovery.Selection
	// InformerOptions returns the informer options of a type and its indexes, or why the type cannot be
	// cached. Indexes of the options are ignored. Default: all objects, no indexes.
	InformerOptions func(discovery.Resource) (dynamicinformer.ResourceOptions, []*indexers.Index, error)
	// BuildLimits limit the computation of new indexes over cached objects, and in the first list of a type,
	// which is then cached without the costly ones; see Problems. Default: none.
	BuildLimits indexers.BuildLimits
	// Metrics returns the metrics of a type, for MetricSources. Optional.
	Metrics func(discovery.Resource) []*indexers.Metric
	// References returns the references of a type, for CachedType. Optional.
	References func(discovery.Resource) []*indexers.Reference
	// Exclude returns an error to skip a selected type. Types that match a pattern or category are skipped
	// silently. Optional.
	Exclude func(discovery.Resource) error
}

// complete sets the defaults.
func (s *Settings) complete() error {
	if s.Selection == nil {
		return errors.New("live: Settings.Selection is required")
	}
	if s.InformerOptions == nil {
		s.InformerOptions = func(discovery.Resource) (o dynamicinformer.ResourceOptions,
			_ []*indexers.Index, _ error) {
			return o, nil, nil
		}
	}
	if s.Metrics == nil {
		s.Metrics = func(discovery.Resource) []*indexers.Metric { return nil }
	}
	if s.References == nil {
		s.References = func(discovery.Resource) []*indexers.Reference { return nil }
	}
	if s.Exclude == nil {
		s.Exclude = func(discovery.Resource) error { return nil }
	}
	return nil
}

// ReconcilerOptions configures a Reconciler. Server, Tracker and Settings are required. Run calls the
// functions one at a time and without holding a lock.
type ReconcilerOptions struct {
	// Server serves the types from informers of its factory.
	Server *Server
	// Tracker provides the types of the cluster. It must be running.
	Tracker *discovery.Tracker
	// Settings are the initial settings; see Reconciler.Update.
	Settings Settings
	// OnServed and OnDropped are called when serving of a type starts and ends. Optional.
	OnServed, OnDropped func(discovery.Resource)
	// OnRejected is called when a name cannot be resolved to a cacheable type, and again when the reason
	// changes. Optional.
	OnRejected func(name string, why error)
}

// Reconciler serves the selected types of a cluster from a Server. It follows types that are installed or
// removed. Create it with NewReconciler and start it with Run, after the Server's factory. It is safe for
// concurrent use.
type Reconciler struct {
	options  ReconcilerOptions
	wakeup   chan struct{}
	updates  chan settingsUpdate
	runEnded chan struct{} // closed when Run returns
	// settings belong to Run.
	settings Settings

	mu struct {
		sync.Mutex
		// types is replaced, never changed.
		types    map[schema.GroupResource]servedType
		problems map[string]error
		// reconciled is set after the first reconciliation with a complete list of types.
		reconciled bool
	}
}

// CachedType is a type that is served from the cache.
type CachedType struct {
	discovery.Resource
	Informer *dynamicinformer.Informer
	// Indexes are the indexes for queries of Source.
	Indexes []*indexers.Index
	// References are the references of Settings.
	References []*indexers.Reference
	// Replacement is an informer with changed options. It replaces Informer when it has synced. Nil if no
	// change is pending.
	Replacement *dynamicinformer.Informer

	metrics []*indexers.Metric
	// refusals are the reasons why indexes of the settings are missing.
	refusals []error
	view     *bind.View
	cache    *typeCache
}

// Source returns the cache of the type, for queries with the current indexes. An index can have another name
// in Informer.
func (t CachedType) Source() query.Source {
	if t.cache == nil { // the zero value with an informer
		return query.ForInformer(t.Informer)
	}
	return t.cache
}

// NewReconciler returns a Reconciler. The error describes missing options.
func NewReconciler(options ReconcilerOptions) (*Reconciler, error) {
	if options.Server == nil || options.Tracker == nil {
		return nil, errors.New("live: Server and Tracker are required")
	}
	if err := options.Settings.complete(); err != nil {
		return nil, err
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
	return &Reconciler{options: options, settings: options.Settings, wakeup: make(chan struct{}, 1),
		updates: make(chan settingsUpdate), runEnded: make(chan struct{})}, nil
}

// Run reconciles until ctx ends. The types are served until the factory ends. Call it once.
func (r *Reconciler) Run(ctx context.Context) {
	defer close(r.runEnded)
	defer r.refuseUnsynced()
	subscription := r.options.Tracker.Subscribe(func(discovery.Event) { r.wake() })
	defer subscription.Stop()
	if r.options.Tracker.WaitForSync(ctx) != nil {
		return // ctx has ended
	}
	// Settings are compared with the definitions. Without the right to read them, they stay unknown.
	_ = r.options.Server.definitions.WaitForSync(ctx)
	discoveryFailed := r.reconcile(ctx)
	for {
		var retry <-chan time.Time
		if discoveryFailed {
			retry = time.After(staleDiscoveryPause)
		}
		select {
		case <-r.wakeup:
			discoveryFailed = r.reconcile(ctx)
		case <-retry:
			discoveryFailed = r.reconcile(ctx)
		case update := <-r.updates:
			failed, err := r.update(ctx, update)
			if err == nil {
				discoveryFailed = failed
			}
			update.result <- err
		case <-ctx.Done():
			return
		}
	}
}

// wake requests a reconciliation.
func (r *Reconciler) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// Types returns the served types by group and resource.
func (r *Reconciler) Types() []CachedType {
	served := r.served()
	types := make([]CachedType, 0, len(served))
	for _, t := range served {
		types = append(types, t.export())
	}
	slices.SortFunc(types, func(a, b CachedType) int {
		return cmp.Or(cmp.Compare(a.GVR.Group, b.GVR.Group), cmp.Compare(a.GVR.Resource, b.GVR.Resource))
	})
	return types
}

// Type returns a served type in any version, or false.
func (r *Reconciler) Type(gr schema.GroupResource) (CachedType, bool) {
	t, ok := r.served()[gr]
	if !ok {
		return CachedType{}, false
	}
	return t.export(), true
}

func (r *Reconciler) served() map[schema.GroupResource]servedType {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.types
}

// MetricSources returns the metrics of the served types with their caches, for indexers.ReadMetrics.
func (r *Reconciler) MetricSources() []indexers.MetricSource {
	for types := r.Types(); ; {
		var sources []indexers.MetricSource
		for _, t := range types {
			if len(t.metrics) > 0 {
				sources = append(sources, query.MetricSource(t.GVR, t.metrics, t.view.Snapshot()))
			}
		}
		latest := r.Types()
		if slices.EqualFunc(latest, types, func(a, b CachedType) bool { return a.view == b.view }) {
			return sources
		}
		types = latest // a view can have lost its indexes before the snapshot
	}
}

// Problems returns an error for each name of the selection that cannot be resolved to a cacheable type, and
// for each type that cannot be served or lacks indexes because of BuildLimits.
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
