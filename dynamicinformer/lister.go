package dynamicinformer

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/store"
)

// lister is a cache.GenericLister that decodes only the objects that it returns.
type lister struct{ informer *Informer }

func (l lister) List(selector labels.Selector) ([]runtime.Object, error) {
	return l.ByNamespace("").List(selector)
}

// Get implements cache.GenericLister. As in client-go, name is a key: "namespace/name", or a name.
func (l lister) Get(name string) (runtime.Object, error) { return l.informer.get(name, name) }

func (l lister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return namespaceLister{informer: l.informer, namespace: namespace}
}

type namespaceLister struct {
	informer  *Informer
	namespace string
}

func (l namespaceLister) List(selector labels.Selector) ([]runtime.Object, error) {
	if err := l.informer.checkStored(); err != nil {
		return nil, err
	}
	if l.namespace == "" {
		return runtimeObjects(l.informer.core.Select(selector)), nil
	}
	return runtimeObjects(l.informer.core.SelectIn(l.namespace, selector)), nil
}

func (l namespaceLister) Get(name string) (runtime.Object, error) {
	key, ok := naming.Key(cache.NewObjectName(l.namespace, name))
	if !ok {
		return nil, apierrors.NewNotFound(l.informer.gvr.GroupResource(), name)
	}
	return l.informer.get(key, name)
}

func (i *Informer) get(key, name string) (runtime.Object, error) {
	obj, _, err := i.GetIndexer().GetByKey(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", formatGVR(i.gvr), err)
	}
	if o, ok := obj.(runtime.Object); ok {
		return o, nil
	}
	return nil, apierrors.NewNotFound(i.gvr.GroupResource(), name)
}

// runtimeObjects omits objects that a transform changed to another type.
func runtimeObjects(objects []any) []runtime.Object {
	list := make([]runtime.Object, 0, len(objects))
	for _, obj := range objects {
		if o, ok := obj.(runtime.Object); ok {
			list = append(list, o)
		}
	}
	return list
}

// NewSharedIndexInformer works like cache.NewSharedIndexInformer with the store of this package, for code
// that has its own ListerWatcher. The cache holds *unstructured.Unstructured as JSON, without the fields that
// prune drops, and decodes them when they are read. It holds other objects unchanged. example only names the
// objects in logs. The informer has no Status and does not react to the deletion of its type. Prefer a
// Factory: here each event is encoded again, because lw has decoded it. It returns an error for an invalid
// Prune.
func NewSharedIndexInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers cache.Indexers, prune Prune) (cache.SharedIndexInformer, error) {
	pruner, err := prune.pruner()
	if err != nil {
		return nil, err
	}
	return informer.New(informer.InlineWatcherOf(lw), informer.Options{
		ObjectDescription: fmt.Sprintf("%T", example), ResyncPeriod: resync, Indexers: indexers,
		Format: store.NewPacked(pruner, nil),
	}), nil
}

// GetLive reads an object from the API server, with all fields, and then applies Transform. It needs the
// right to get the type. The object is newer than the cache, or equal. Options.LiveReadLimiter limits
// these reads. Counters count them as requests with the verb get. The error of a missing object
// satisfies apierrors.IsNotFound. namespace is empty for a cluster-scoped object.
func (i *Informer) GetLive(ctx context.Context, namespace, name string) (runtime.Object, error) {
	if err := i.deps.liveReadLimiter.Wait(ctx); err != nil {
		return nil, fmt.Errorf("wait to read %s %s from the API server: %w", formatGVR(i.gvr), name, err)
	}
	gvr := i.gvr.GroupResource().WithVersion(cmp.Or(i.Status().Version, i.gvr.Version))
	object, err := i.deps.Client.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	i.health.ReadLive(err)
	if err != nil {
		return nil, err // not the nil object in a non-nil interface
	}
	if i.options.Transform == nil {
		return object, nil
	}
	transformed, err := i.options.Transform(object)
	if err != nil {
		return nil, fmt.Errorf("transform %s %s: %w", formatGVR(i.gvr), name, err)
	}
	result, ok := transformed.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("transform %s %s: the result is a %T", formatGVR(i.gvr), name, transformed)
	}
	return result, nil
}
