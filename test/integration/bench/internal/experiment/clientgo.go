package experiment

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// newClientGo returns the informer of client-go's dynamicinformer.
func newClientGo(o Options) (Cache, error) {
	client, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	return newSharedInformer(dynamicinformer.NewFilteredDynamicInformer(client, o.GVR, "", 0,
		namespaceIndex(), nil), o), nil
}

// newClientGoTrimmed returns the same informer with the usual transform of operators.
func newClientGoTrimmed(o Options) (Cache, error) { return newClientGoWith(stripManagedFields, o) }

func stripManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// newClientGoKept returns the same informer with a hand-written transform that keeps five fields.
func newClientGoKept(o Options) (Cache, error) {
	return newClientGoWith(keepOnly(keepPaths(o.Kind)), o)
}

func newClientGoWith(transform cache.TransformFunc, o Options) (Cache, error) {
	c, err := newClientGo(o)
	if err != nil {
		return nil, err
	}
	return c, c.(*sharedInformer).informer.SetTransform(transform)
}

// newClientGoMetadata returns the informer of client-go's metadatainformer. Its objects have no spec and
// status.
func newClientGoMetadata(o Options) (Cache, error) {
	client, err := metadata.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	return newSharedInformer(metadatainformer.NewFilteredMetadataInformer(client, o.GVR, "", 0,
		namespaceIndex(), nil), o), nil
}

func newSharedInformer(generic informers.GenericInformer, o Options) *sharedInformer {
	informer := generic.Informer()
	return &sharedInformer{
		informer: informer,
		lister:   generic.Lister(),
		handler:  o.handler(),
		run:      func(ctx context.Context) { informer.RunWithContext(ctx) },
		addIndex: func() error { return informer.AddIndexers(cache.Indexers{indexName: indexFunc}) },
	}
}

func namespaceIndex() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}
