package dynamicinformer

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Options configure a Factory. One of Client and Config is required; the zero value of everything else
// is usable.
type Options struct {
	// Client lists and watches. It takes precedence over Config only in that giving both is an error.
	Client dynamic.Interface

	// Config is what a client is made from, with NewClient, where Client is nil. It is copied. Its client-side
	// rate limit applies as it is; with many types, raise QPS and Burst, or set QPS to -1 and leave
	// fairness to the server.
	Config *rest.Config

	// HTTPClient is used with Config, so that connections can be shared with other clients. Default: one
	// made from Config.
	HTTPClient *http.Client

	// Namespace limits the factory to one namespace. Default: all. Cluster-scoped types cannot be read
	// by a factory that has a namespace.
	Namespace string

	// Types tells which types the server has, live; a discovery.Tracker does through its Types method.
	// With it, an informer waits for its type, stops when the type goes (each object is delivered as
	// deleted and the cache is emptied), and starts again when it comes back. The caller runs it, for
	// longer than the factory. Default: every type is taken to exist, as client-go does.
	Types TypeSource

	// TweakListOptions adjusts the options of every list and watch request of a type, to set selectors
	// for example. It must give the same answer every time for the same type, and must leave
	// resourceVersion, limit, continue, and the watch options alone.
	TweakListOptions func(gvr schema.GroupVersionResource, options *metav1.ListOptions)

	// Resync is how often each handler gets the whole cache again as updates. Default: never.
	Resync time.Duration

	// Indexers are added to every informer, beside the index by namespace, which is always there.
	Indexers cache.Indexers

	// Transform changes each object before it is stored; dropping fields saves memory. It must be
	// idempotent and should not fail: see cache.TransformFunc. StripManagedFields is ready-made.
	Transform cache.TransformFunc
}

// client returns the dynamic client that the options ask for.
func (o Options) client() (dynamic.Interface, error) {
	switch {
	case o.Client != nil && (o.Config != nil || o.HTTPClient != nil):
		return nil, errors.New("dynamicinformer: give Client, or Config and HTTPClient, not both")
	case o.Client != nil:
		return o.Client, nil
	case o.Config == nil:
		return nil, errors.New("dynamicinformer: one of Client and Config is required")
	}
	return NewClient(o.Config, o.HTTPClient)
}

// indexers returns the index functions of a new informer.
func (o Options) indexers() (cache.Indexers, error) {
	all := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for name, f := range o.Indexers {
		if f == nil {
			return nil, fmt.Errorf("dynamicinformer: the index function %q is nil", name)
		}
		if name == cache.NamespaceIndex {
			return nil, fmt.Errorf("dynamicinformer: the index %q is always there and cannot be replaced", name)
		}
		all[name] = f
	}
	return all, nil
}
