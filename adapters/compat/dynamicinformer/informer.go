package dynamicinformer

import (
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	crdcache "github.com/crdcache/crdcache/dynamicinformer"
)

// NewFilteredDynamicInformer returns an informer without a factory; its Run runs it. An empty namespace means
// all namespaces. tweakListOptions may be nil. An index by namespace is always added to indexers.
func NewFilteredDynamicInformer(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string,
	resyncPeriod time.Duration, indexers cache.Indexers,
	tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	namespaceFunc, byNamespace := indexers[cache.NamespaceIndex]
	if byNamespace && !isNamespaceIndex(namespaceFunc) {
		return newFailedInformer(gvr, fmt.Errorf("making the informer of %s: the index %q has another function than cache.MetaNamespaceIndexFunc", gvr, cache.NamespaceIndex))
	}
	otherIndexers := maps.Clone(indexers)
	delete(otherIndexers, cache.NamespaceIndex)
	// Decoded objects, because a program written for client-go's informers may list everything repeatedly,
	// which would decode packed objects each time. Objects of a fake client may contain values without a JSON
	// form, or be compared by address.
	storage := crdcache.Storage{Mode: crdcache.StorageObject}
	if p, ok := client.(packedClient); ok {
		client, storage.Mode = p.Interface, crdcache.StoragePacked
	}
	namespaces := crdcache.AllNamespaces()
	if namespace != metav1.NamespaceAll {
		namespaces = crdcache.InNamespaces(namespace)
	}
	// The factory runs nothing and need not be stopped.
	factory, err := crdcache.New(crdcache.Options{Client: client, Defaults: crdcache.ResourceOptions{
		Namespaces: namespaces, Resync: new(max(resyncPeriod, 0)), Indexers: otherIndexers,
		TweakListOptions: ignoreType(tweakListOptions), Storage: storage,
	}})
	var informer *crdcache.Informer
	if err == nil {
		informer, err = factory.ForResource(gvr)
	}
	switch {
	case err != nil:
		return newFailedInformer(gvr, fmt.Errorf("making the informer of %s: %w", gvr, err))
	case byNamespace:
		return informer
	default:
		return &withoutNamespaceIndex{inner: informer}
	}
}

// Packed returns a client for the functions of this package. Their informers then store objects as JSON,
// which takes less memory; an object is decoded when it is read. Lists and watches also take less CPU time
// with a client from NewClient of this project's own package.
func Packed(client dynamic.Interface) dynamic.Interface { return packedClient{client} }

type packedClient struct{ dynamic.Interface }

// ignoreType adapts a function that ignores the type.
func ignoreType(tweak TweakListOptionsFunc) func(schema.GroupVersionResource, *metav1.ListOptions) {
	if tweak == nil {
		return nil
	}
	return func(_ schema.GroupVersionResource, options *metav1.ListOptions) { tweak(options) }
}

// isNamespaceIndex compares code addresses, because Go cannot compare functions.
func isNamespaceIndex(f cache.IndexFunc) bool {
	return f != nil && reflect.ValueOf(f).Pointer() == reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer()
}

// inner avoids a conflict of the embedded type's name with the method Informer.
type inner = crdcache.Informer

// withoutNamespaceIndex is an informer that was requested without an index by namespace. Users may therefore
// add one.
type withoutNamespaceIndex struct {
	*inner

	mu struct {
		sync.Mutex
		namespaceIndexAdded bool
	}
}

func (i *withoutNamespaceIndex) Informer() cache.SharedIndexInformer { return i }

// AddIndexers adds indexes. It accepts one index by namespace, which exists already.
func (i *withoutNamespaceIndex) AddIndexers(indexers cache.Indexers) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	others := maps.Clone(indexers)
	hasNamespaceIndex := isNamespaceIndex(indexers[cache.NamespaceIndex])
	if hasNamespaceIndex && !i.mu.namespaceIndexAdded {
		delete(others, cache.NamespaceIndex)
	}
	if err := i.inner.AddIndexers(others); err != nil {
		return err
	}
	i.mu.namespaceIndexAdded = i.mu.namespaceIndexAdded || hasNamespaceIndex
	return nil
}
