package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/persist"
	"github.com/crdcache/crdcache/internal/requests"
)

var (
	// ErrShutdown is returned by calls after Shutdown.
	ErrShutdown = health.ErrShutdown
	// ErrStopped is returned for an informer that has stopped.
	ErrStopped = informer.ErrStopped
	// ErrOpaqueVersion is returned by WaitForVersion if the resource version, or a version in the
	// cache, is not a positive number: such versions cannot be compared.
	ErrOpaqueVersion = informer.ErrOpaqueVersion
	// ErrVersionLost is returned by WaitForVersion for a resource version that the server has not
	// reached: the server was restored from a backup, or the version is from another server.
	ErrVersionLost = informer.ErrVersionLost
	// ErrNotStored is returned by calls that need the objects of an informer with StorageNone.
	ErrNotStored = informer.ErrNotStored
)

// Factory makes and runs informers, one for each type and set of options. It is safe for concurrent use.
type Factory struct {
	deps    factoryDependencies
	options Options
	// group holds the limits and dictionaries that clusters share. cluster is the factory's name in the
	// group; it is empty for a factory of New.
	group      *Group
	cluster    string
	leaveGroup func() // further calls do nothing
	// typeRegistry holds the types that Options.Types reports until stopTypes is called. Both can be nil.
	typeRegistry *follow.TypeRegistry
	stopTypes    func()
	// customTypes is nil with Options.Types, and with Options.Client.
	customTypes *customTypes
	aggregator  *health.Aggregator

	// ctx ends during Shutdown, after queued events have been handled.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// done is closed when Shutdown is called.
	done chan struct{}
	// eventDrops counts the informers and listeners whose queued events Shutdown has dropped.
	eventDrops atomic.Int64

	mu struct {
		sync.Mutex
		entries map[entryKey]*entry
		// runningEntries are the started entries that have not ended, also if they are no longer in entries.
		runningEntries map[*entry]struct{}
		// endedCounters holds the counters of informers that are in neither map.
		endedCounters map[typeOptions]status.Counters
		subscriptions map[*Subscription]struct{} // the open ones
		// startCtx is the context of the latest Start; nil before the first Start.
		startCtx context.Context
		// metrics are the identities for client-go's metrics and the entries that report under them.
		metrics map[schema.GroupVersionResource]metricsOwner
	}
}

// New returns a Factory. The error joins everything that is wrong with the options.
func New(options Options) (*Factory, error) {
	listConcurrency := options.withDefaults().ListConcurrency
	group := newGroup(GroupOptions{MemoryBudget: options.MemoryBudget, ListConcurrency: listConcurrency})
	f, err := group.newFactory("", options)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	return f, nil
}

// newFactory returns the factory of a cluster, which need not be a member of the group yet.
func (g *Group) newFactory(cluster string, options Options) (*Factory, error) {
	followsDefinitions := options.Types == nil && options.Config != nil && followsCRDs
	if options.Types == typesource.AssumeServed {
		options.Types = nil
	}
	client, err := options.client()
	if err = errors.Join(err, options.validate()); err != nil {
		return nil, err
	}
	options = options.withDefaults()
	limiter := g.listPool.NewLimiter(options.ListConcurrency, time.Now)
	f := &Factory{group: g, cluster: cluster, options: options, deps: factoryDependencies{
		Server: &requests.Server{
			Client:          client,
			Limiter:         limiter,
			RestoreDetector: requests.NewRestoreDetector(),
		},
		cluster:         cluster,
		logger:          options.Logger,
		sweeper:         g.sweeper,
		dictionaries:    g.dictionaries,
		liveReadLimiter: options.LiveReadLimiter,
		keepRepeated:    options.KeepRepeated,
	}}
	f.leaveGroup = sync.OnceFunc(func() {
		limiter.LeavePool()
		g.drop(f)
		if connection := connectionOf(options.Config); connection != nil {
			connection.CloseIdleConnections()
		}
	})
	f.deps.namespaces = f.namespaces
	f.deps.isUnreachable = func() bool {
		return f.Condition(status.ConditionReachable).Status == metav1.ConditionFalse
	}
	if options.Persistence != nil {
		f.deps.persistence = persist.NewShared(options.Persistence, client, options.PersistenceInterval)
	}
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	f.done = make(chan struct{})
	f.mu.entries, f.mu.runningEntries = map[entryKey]*entry{}, map[*entry]struct{}{}
	f.mu.endedCounters, f.mu.subscriptions = map[typeOptions]status.Counters{}, map[*Subscription]struct{}{}
	f.mu.metrics = map[schema.GroupVersionResource]metricsOwner{}
	_, onDemand := options.Types.(typesource.OnDemand)
	f.aggregator = health.NewAggregator(options.Types == nil || onDemand, time.Now)
	f.aggregator.Expect(options.requiredTypes()...)
	if _, err := f.AddListener(options.Listener); err != nil {
		return nil, err
	}
	if followsDefinitions {
		f.customTypes = &customTypes{factory: f, registries: map[schema.GroupResource]*follow.TypeRegistry{}}
	}
	if options.Types != nil {
		f.typeRegistry = follow.NewTypeRegistry(f.aggregator.SetTypesKnown, f.aggregator.SetTypesError)
		f.stopTypes = sync.OnceFunc(options.Types.Subscribe(f.typeRegistry))
	}
	return f, nil
}

// resource merges the options of a type as Options.resource does.
func (f *Factory) resource(gvr schema.GroupVersionResource, overrides ...ResourceOptions) ResourceOptions {
	options := f.options.resource(gvr, overrides...)
	if options.Storage.Mode == StorageAdaptive && f.group.options.MemoryBudget > 0 {
		// uncompressed lists would exceed the budget while the cache fills
		options.Storage.CompressLists = true
	}
	return options
}

// ForResource returns the informer of gvr. Every call returns the same informer, and so does Acquire
// without options. It runs from the next Start on and is held until Shutdown; use Acquire for an
// informer that can be released. An informer that stopped with the context of its Start is replaced by
// a new one, which the next Start runs.
//
// ForResource does not check whether the server has the type; Informer.Status reports it. It fails for a GVR
// without version or resource, and if only some of Indexes exist. After Shutdown it returns ErrShutdown.
func (f *Factory) ForResource(gvr schema.GroupVersionResource) (*Informer, error) {
	options := f.resource(gvr)
	if err := f.options.checkType(gvr, options); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	// The claim is never released.
	h, err := f.findOrMake(acquireRequest{key: entryKeyOf(gvr, options), options: options})
	if err != nil {
		return nil, err
	}
	return h.Informer(), nil
}

// MustForResource works like ForResource for a constant GVR: it panics where ForResource returns an error.
func (f *Factory) MustForResource(gvr schema.GroupVersionResource) *Informer {
	i, err := f.ForResource(gvr)
	if err != nil {
		panic(err)
	}
	return i
}

// Start runs every informer that was requested and does not run yet, until ctx ends, Shutdown is called, or
// the informer is released. Call it again to start informers that were requested later. It does not block. If
// ctx has ended, Start starts nothing and returns the cause.
//
// An informer that stopped with the context of an earlier Start cannot run again. While a caller holds one
// (from ForResource, or a Handle that is not released), Start starts nothing and returns an ErrStopped that
// names the types. ForResource and Acquire then return a new informer for Start to run. A Subscription
// requests a new informer automatically.
func (f *Factory) Start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isShutDown() {
		return ErrShutdown
	}
	if ctx.Err() != nil {
		return fmt.Errorf("dynamicinformer: start: %w", context.Cause(ctx))
	}
	if ended := f.endedLocked(); len(ended) > 0 {
		return fmt.Errorf("dynamicinformer: %s cannot be started again: %w, with the context of an earlier Start: ask for it again, release it, or make another factory",
			naming.FormatTypes(ended), ErrStopped)
	}
	f.mu.startCtx = ctx
	for _, e := range f.mu.entries {
		f.startLocked(e)
	}
	return nil
}

// endedLocked returns the types of ended informers with a holder that does not request a new one.
func (f *Factory) endedLocked() []schema.GroupVersionResource {
	types := map[schema.GroupVersionResource]bool{}
	for key, e := range f.mu.entries {
		if e.ctx != nil && e.handles > e.reacquiring && e.state() == entryEnded {
			types[key.gvr] = true
		}
	}
	return sortedGVRs(types)
}

// Informers returns all informers that are held or linger, ordered by group, resource, version and options.
// They include the informers that the factory itself uses, for example to list namespaces.
func (f *Factory) Informers() []*Informer {
	return naming.Map(f.entries(), func(e *entry) *Informer { return e.informer })
}

// Status returns the status of each of Informers, in the same order.
func (f *Factory) Status() []status.Status { return naming.Map(f.Informers(), (*Informer).Status) }

// sortedGVRs returns the keys of a map, ordered by group, resource and version.
func sortedGVRs[V any](m map[schema.GroupVersionResource]V) []schema.GroupVersionResource {
	return slices.SortedFunc(maps.Keys(m), naming.CompareTypes)
}
