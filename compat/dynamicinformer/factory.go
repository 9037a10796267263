package dynamicinformer

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// DynamicSharedInformerFactory gives shared informers and listers of any type.
type DynamicSharedInformerFactory interface {
	// Start runs every informer that has been asked for and does not run yet, until the channel is closed.
	// It does not block, and does nothing after Shutdown.
	Start(stopCh <-chan struct{})

	// ForResource returns the informer of a type, the same one for every call. Start runs it.
	ForResource(gvr schema.GroupVersionResource) informers.GenericInformer

	// WaitForCacheSync waits until every informer that was started before this call has synced, or the
	// channel is closed, and tells of each whether it has.
	WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool

	// Shutdown keeps Start from starting anything from now on, and waits until what was started has ended.
	// It does not end it: the channels given to Start do, before this call or while it waits. It can be
	// called again, also at the same time; each call waits.
	Shutdown()
}

// TweakListOptionsFunc adjusts the options of every list and watch request, to set selectors for example.
type TweakListOptionsFunc func(*metav1.ListOptions)

// NewDynamicSharedInformerFactory returns a factory for all namespaces.
func NewDynamicSharedInformerFactory(client dynamic.Interface,
	defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewFilteredDynamicSharedInformerFactory returns a factory for one namespace, or all if it is empty, whose
// requests are adjusted by tweakListOptions, which may be nil. Handlers that do not name a resync period get
// defaultResync; zero means none.
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration,
	namespace string, tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	f := &factory{client: client, resync: defaultResync, namespace: namespace, tweak: tweakListOptions}
	f.mu.entries = map[schema.GroupVersionResource]*entry{}
	return f
}

// factory does not run its informers through the one it is built on, because that one's Shutdown ends them.
type factory struct {
	client    dynamic.Interface
	resync    time.Duration
	namespace string
	tweak     TweakListOptionsFunc

	running sync.WaitGroup
	mu      struct {
		sync.Mutex
		entries  map[schema.GroupVersionResource]*entry
		shutdown bool
	}
}

// entry is an informer and whether it was started.
type entry struct {
	informer informers.GenericInformer
	started  bool
}

// ForResource implements DynamicSharedInformerFactory.
func (f *factory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e, ok := f.mu.entries[gvr]; ok {
		return e.informer
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	e := &entry{informer: NewFilteredDynamicInformer(f.client, gvr, f.namespace, f.resync, indexers, f.tweak)}
	f.mu.entries[gvr] = e
	return e.informer
}

// Start implements DynamicSharedInformerFactory.
func (f *factory) Start(stopCh <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.shutdown {
		return
	}
	for _, e := range f.mu.entries {
		if e.started {
			continue
		}
		e.started = true
		f.running.Go(func() { e.informer.Informer().Run(stopCh) }) // ended by stopCh
	}
}

// WaitForCacheSync implements DynamicSharedInformerFactory.
func (f *factory) WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool {
	synced := map[schema.GroupVersionResource]bool{}
	for gvr, informer := range f.started() {
		select {
		case <-informer.HasSyncedChecker().Done():
		case <-stopCh:
		}
		synced[gvr] = informer.HasSynced()
	}
	return synced
}

func (f *factory) started() map[schema.GroupVersionResource]cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	for gvr, e := range f.mu.entries {
		if e.started {
			all[gvr] = e.informer.Informer()
		}
	}
	return all
}

// Shutdown implements DynamicSharedInformerFactory.
func (f *factory) Shutdown() {
	f.mu.Lock()
	f.mu.shutdown = true
	f.mu.Unlock()
	f.running.Wait()
}
