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

// Setup is what a scenario wants an informer of.
type Setup struct {
	// Config leads to the server, through the scenario's faults.
	Config *rest.Config
	// GVR is the type: ConfigMaps.
	GVR schema.GroupVersionResource
	// Namespace is where they are; empty: everywhere.
	Namespace string
	// LabelSelector and FieldSelector go with every request.
	LabelSelector, FieldSelector string
	// Resync is the informer's default period; zero: none.
	Resync time.Duration
	// Indexers are those that the informer shall have, beside one by namespace. Never nil.
	Indexers cache.Indexers
}

// New makes the informer of a scenario, which does not run yet. It fails t where it cannot.
type New func(t testing.TB, setup Setup) cache.SharedIndexInformer

// NewClient makes a dynamic client: dynamic.NewForConfig, or one that is to do the same.
type NewClient func(*rest.Config) (dynamic.Interface, error)

// Subject is an implementation to be compared with client-go's.
type Subject struct {
	Name string
	New  New
}

// Reference makes client-go's own informer on its own dynamic client.
func Reference(t testing.TB, setup Setup) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(setup.ListWatch(t, DefaultClient), &unstructured.Unstructured{},
		setup.Resync, setup.Indexers)
}

// DefaultClient makes client-go's dynamic client.
func DefaultClient(config *rest.Config) (dynamic.Interface, error) {
	return dynamic.NewForConfig(config)
}

// ListWatch lists and watches what the setup says with a new client.
func (s Setup) ListWatch(t testing.TB, newClient NewClient) cache.ListerWatcher {
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
