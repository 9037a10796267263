package conformance

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Setup has the parameters of a scenario's informer.
type Setup struct {
	// Config is the configuration of a client with the scenario's faults.
	Config *rest.Config
	// GVR is the GVR of ConfigMaps.
	GVR schema.GroupVersionResource
	// Namespace is the namespace; empty for all.
	Namespace string
	// LabelSelector and FieldSelector are sent with every request.
	LabelSelector, FieldSelector string
	// Resync is the default resync period; zero for none.
	Resync time.Duration
	// Indexers are the indexes in addition to one by namespace. It is not nil.
	Indexers cache.Indexers
}

// NewInformerFunc returns an informer that does not run yet, or fails t.
type NewInformerFunc func(t testing.TB, setup Setup) cache.SharedIndexInformer

// NewClient makes a dynamic client, as dynamic.NewForConfig does.
type NewClientFunc func(*rest.Config) (dynamic.Interface, error)

// Subject is an implementation that is compared with client-go's.
type Subject struct {
	Name string
	New  NewInformerFunc
	// WithoutObjects omits the scenarios that need indexes, resyncs or writes to the store.
	WithoutObjects bool
}

// Reference returns client-go's informer on its own dynamic client.
func Reference(t testing.TB, setup Setup) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(setup.ListWatch(t, DefaultClient), &unstructured.Unstructured{},
		setup.Resync, setup.Indexers)
}

// DefaultClient returns client-go's dynamic client.
func DefaultClient(config *rest.Config) (dynamic.Interface, error) {
	return dynamic.NewForConfig(config)
}

// ListWatch returns a ListerWatcher for the setup with a new client.
func (s Setup) ListWatch(t testing.TB, newClient NewClientFunc) cache.ListerWatcher {
	t.Helper()
	client, err := newClient(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	resource := dynamic.ResourceInterface(client.Resource(s.GVR))
	if s.Namespace != "" {
		resource = client.Resource(s.GVR).Namespace(s.Namespace)
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = s.LabelSelector, s.FieldSelector
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = s.LabelSelector, s.FieldSelector
			return resource.Watch(ctx, o)
		},
	}, client)
}
