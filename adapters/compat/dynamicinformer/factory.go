package dynamicinformer

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// DynamicSharedInformerFactory is client-go's interface. Since client-go 0.38 it includes StartWithContext
// and WaitForCacheSyncWithContext.
type DynamicSharedInformerFactory = clientgo.DynamicSharedInformerFactory

// DynamicSharedInformerOption is an option of NewDynamicSharedInformerFactoryWithOptions.
type DynamicSharedInformerOption func(*factory) *factory

// WithShardSelector limits all informers to the objects of a selector.
func WithShardSelector(shardSelector sharding.Selector) DynamicSharedInformerOption {
	return func(f *factory) *factory {
		f.shard = shardSelector
		return f
	}
}

// TweakListOptionsFunc adjusts the options of every list and watch request, for example to set selectors.
type TweakListOptionsFunc func(*metav1.ListOptions)

// NewDynamicSharedInformerFactoryWithOptions returns a factory for all namespaces with these options.
func NewDynamicSharedInformerFactoryWithOptions(client dynamic.Interface, defaultResync time.Duration,
	options ...DynamicSharedInformerOption) DynamicSharedInformerFactory {
	f := &factory{client: client, resync: defaultResync}
	f.mu.entries = map[schema.GroupVersionResource]*entry{}
	for _, option := range options {
		f = option(f)
	}
	return newWithResult(clientFactory.WaitForCacheSyncWithContext, f)
}

// NewDynamicSharedInformerFactory returns a factory for all namespaces.
func NewDynamicSharedInformerFactory(client dynamic.Interface,
	defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewDynamicSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredDynamicSharedInformerFactory returns a factory for one namespace, or for all if it is empty.
// tweakListOptions adjusts the requests and may be nil. defaultResync applies to handlers without a resync
// period; zero means none.
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration,
	namespace string, tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	return NewDynamicSharedInformerFactoryWithOptions(client, defaultResync, func(f *factory) *factory {
		f.namespace, f.tweak = namespace, tweakListOptions
		return f
	})
}

// factory runs its informers itself, because Shutdown of the underlying factory would stop them.
type factory struct {
	client    dynamic.Interface
	resync    time.Duration
	namespace string
	tweak     TweakListOptionsFunc
	shard     sharding.Selector // nil: all objects

	runningInformers sync.WaitGroup
	mu               struct {
		sync.Mutex
		entries  map[schema.GroupVersionResource]*entry
		shutdown bool
	}
}

type entry struct {
	informer informers.GenericInformer
	started  bool
}

func (f *factory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e, ok := f.mu.entries[gvr]; ok {
		return e.informer
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	e := &entry{informer: NewFilteredDynamicInformer(f.client, gvr, f.namespace, f.resync, indexers, f.tweak)}
	if i, ok := e.informer.(*inner); ok && f.shard != nil {
		if err := i.SetShardSelector(f.shard); err != nil {
			e.informer = newFailedInformer(gvr, err)
		}
	}
	f.mu.entries[gvr] = e
	return e.informer
}

// Start is StartWithContext with a channel.
func (f *factory) Start(stopCh <-chan struct{}) {
	f.StartWithContext(wait.ContextForChannel(stopCh))
}

// StartWithContext runs every requested informer that does not run yet, until ctx ends. It does not block,
// and does nothing after Shutdown.
func (f *factory) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.shutdown {
		return
	}
	for _, e := range f.mu.entries {
		if !e.started {
			e.started = true
			f.runningInformers.Go(func() { e.informer.Informer().RunWithContext(ctx) }) // ended by ctx
		}
	}
}

// WaitForCacheSync implements DynamicSharedInformerFactory. It polls like client-go. Tests with client-go's
// fake client rely on the interval: that client loses changes between the list and the watch.
func (f *factory) WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool {
	synced := map[schema.GroupVersionResource]bool{}
	for gvr, informer := range f.startedInformers() {
		synced[gvr] = cache.WaitForCacheSync(stopCh, informer.HasSynced)
	}
	return synced
}

func (f *factory) startedInformers() map[schema.GroupVersionResource]cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	informers := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	for gvr, e := range f.mu.entries {
		if e.started {
			informers[gvr] = e.informer.Informer()
		}
	}
	return informers
}

func (f *factory) Shutdown() {
	f.mu.Lock()
	f.mu.shutdown = true
	f.mu.Unlock()
	f.runningInformers.Wait()
}
