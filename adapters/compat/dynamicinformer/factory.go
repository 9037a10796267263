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

// DynamicSharedInformerFactory provides shared informers and listers of any type.
type DynamicSharedInformerFactory interface {
	// Start runs every requested informer that does not run yet, until the channel is closed. It does not
	// block, and does nothing after Shutdown.
	Start(stopCh <-chan struct{})

	// ForResource returns the informer of a type. Every call returns the same informer. Start runs it.
	ForResource(gvr schema.GroupVersionResource) informers.GenericInformer

	// WaitForCacheSync waits until every started informer has synced or the channel is closed. It reports for
	// each informer whether it has synced.
	WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool

	// Shutdown makes Start do nothing, and waits until all started informers have ended. It does not stop
	// them: close the channels given to Start. Calls may be repeated and concurrent; each one waits.
	Shutdown()
}

// TweakListOptionsFunc adjusts the options of every list and watch request, for example to set selectors.
type TweakListOptionsFunc func(*metav1.ListOptions)

// NewDynamicSharedInformerFactory returns a factory for all namespaces.
func NewDynamicSharedInformerFactory(client dynamic.Interface,
	defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewFilteredDynamicSharedInformerFactory returns a factory for one namespace, or for all if it is empty.
// tweakListOptions adjusts the requests and may be nil. defaultResync applies to handlers without a resync
// period; zero means none.
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration,
	namespace string, tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	f := &factory{client: client, resync: defaultResync, namespace: namespace, tweak: tweakListOptions}
	f.mu.entries = map[schema.GroupVersionResource]*entry{}
	return f
}

// factory runs its informers itself, because Shutdown of the underlying factory would stop them.
type factory struct {
	client    dynamic.Interface
	resync    time.Duration
	namespace string
	tweak     TweakListOptionsFunc

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
	f.mu.entries[gvr] = e
	return e.informer
}

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
		f.runningInformers.Go(func() { e.informer.Informer().Run(stopCh) }) // ended by stopCh
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
