package dynamicinformer_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/compat/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func widget(namespace, name, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": name,
			"labels": map[string]any{"color": color}},
	}}
}

// clients are the supported kinds of clients. Both start with the given widgets.
var clients = map[string]func(t *testing.T, objects ...*unstructured.Unstructured) dynamic.Interface{
	"fake": func(_ *testing.T, objects ...*unstructured.Unstructured) dynamic.Interface {
		list := make([]runtime.Object, len(objects))
		for k, o := range objects {
			list[k] = o
		}
		return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{widgets: "WidgetList"}, list...)
	},
	"server": func(t *testing.T, objects ...*unstructured.Unstructured) dynamic.Interface {
		server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true})
		server.Create(t, widgets, objects...)
		return server.Client(t)
	},
}

// onEach runs a test with each client, for this package and for client-go's. Both must behave alike.
func onEach(t *testing.T, test func(t *testing.T,
	client func(...*unstructured.Unstructured) dynamic.Interface, api api)) {
	for name, client := range clients {
		for _, api := range []api{clientGoAPI, ourAPI, packedAPI} {
			t.Run(name+"/"+api.name, func(t *testing.T) {
				test(t, func(objects ...*unstructured.Unstructured) dynamic.Interface {
					return client(t, objects...)
				}, api)
			})
		}
	}
}

// api is the API of this package, with or without packed storage, or of client-go's.
type api struct {
	name    string
	factory func(dynamic.Interface, time.Duration, string,
		func(*metav1.ListOptions)) dynamicinformer.DynamicSharedInformerFactory
	informer func(dynamic.Interface, schema.GroupVersionResource, string, time.Duration, cache.Indexers,
		func(*metav1.ListOptions)) informers.GenericInformer
}

var (
	clientGoAPI = api{
		name: "client-go",
		factory: func(c dynamic.Interface, d time.Duration, ns string,
			tweak func(*metav1.ListOptions)) dynamicinformer.DynamicSharedInformerFactory {
			return clientgo.NewFilteredDynamicSharedInformerFactory(c, d, ns, tweak)
		},
		informer: func(c dynamic.Interface, gvr schema.GroupVersionResource, ns string, d time.Duration,
			x cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
			return clientgo.NewFilteredDynamicInformer(c, gvr, ns, d, x, tweak)
		},
	}
	packedAPI = api{
		name: "packed",
		factory: func(c dynamic.Interface, d time.Duration, ns string,
			tweak func(*metav1.ListOptions)) dynamicinformer.DynamicSharedInformerFactory {
			return ourAPI.factory(dynamicinformer.Packed(c), d, ns, tweak)
		},
		informer: func(c dynamic.Interface, gvr schema.GroupVersionResource, ns string, d time.Duration,
			x cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
			return ourAPI.informer(dynamicinformer.Packed(c), gvr, ns, d, x, tweak)
		},
	}
	ourAPI = api{
		name: "ours",
		factory: func(c dynamic.Interface, d time.Duration, ns string,
			tweak func(*metav1.ListOptions)) dynamicinformer.DynamicSharedInformerFactory {
			return dynamicinformer.NewFilteredDynamicSharedInformerFactory(c, d, ns, tweak)
		},
		informer: func(c dynamic.Interface, gvr schema.GroupVersionResource, ns string, d time.Duration,
			x cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
			return dynamicinformer.NewFilteredDynamicInformer(c, gvr, ns, d, x, tweak)
		},
	}
)

func nextEvent(t *testing.T, events <-chan string) string {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(5 * time.Minute):
		t.Fatal("timed out waiting for an event")
		return ""
	}
}

func recordEvents(t *testing.T, informer cache.SharedIndexInformer) <-chan string {
	t.Helper()
	events := make(chan string, 100)
	name := func(obj any) string { return obj.(*unstructured.Unstructured).GetName() }
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { events <- "add " + name(obj) },
		UpdateFunc: func(_, obj any) { events <- "update " + name(obj) },
		DeleteFunc: func(obj any) { events <- "delete " + name(obj) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestFactoryFiltersByNamespaceAndTweak verifies the content of an informer, and TestUpstream the events.
func TestFactoryFiltersByNamespaceAndTweak(t *testing.T) {
	onEach(t, func(t *testing.T, client func(...*unstructured.Unstructured) dynamic.Interface, api api) {
		c := client(widget("a", "one", "red"), widget("b", "two", "red"))
		tweaked := make(chan struct{}, 100)
		f := api.factory(c, 0, "b", func(o *metav1.ListOptions) {
			o.LabelSelector = "color=red"
			tweaked <- struct{}{}
		})
		informer := f.ForResource(widgets)
		if f.ForResource(widgets) != informer {
			t.Error("the second call of ForResource returned another informer")
		}
		if synced := f.WaitForCacheSync(t.Context().Done()); len(synced) != 0 {
			t.Errorf("before Start, WaitForCacheSync() = %v, want no types", synced)
		}
		stop := make(chan struct{})
		f.Start(stop)
		f.Start(stop)
		if diff := cmp.Diff(map[schema.GroupVersionResource]bool{widgets: true},
			f.WaitForCacheSync(t.Context().Done())); diff != "" {
			t.Errorf("synced (-want +got):\n%s", diff)
		}
		<-tweaked
		if diff := cmp.Diff([]string{"b/two"}, informer.Informer().GetStore().ListKeys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if _, err := informer.Lister().Get("b/two"); err != nil {
			t.Error(err)
		}
		close(stop)
		f.Shutdown()
		f.Shutdown()
	})
}

// TestShutdownWaitsForStop verifies that Shutdown waits until the caller of Start closes the stop channel.
// Shutdown of package dynamicinformer's factory stops the informers itself.
func TestShutdownWaitsForStop(t *testing.T) {
	onEach(t, func(t *testing.T, client func(...*unstructured.Unstructured) dynamic.Interface, api api) {
		f := api.factory(client(), 0, "", nil)
		informer := f.ForResource(widgets).Informer()
		stop := make(chan struct{})
		f.Start(stop)
		f.WaitForCacheSync(t.Context().Done())
		done := make(chan struct{})
		go func() { // ended by stop
			defer close(done)
			f.Shutdown()
		}()
		if informer.IsStopped() {
			t.Error("Shutdown stopped the informer")
		}
		select {
		case <-done:
			t.Error("Shutdown returned before the stop channel was closed")
		default:
		}
		close(stop)
		<-done
		if !informer.IsStopped() {
			t.Error("Shutdown returned before the informer stopped")
		}
		other := f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1",
			Resource: "gadgets"})
		f.Start(make(chan struct{})) // would run forever
		if other.Informer().HasSynced() {
			t.Error("an informer was started after Shutdown")
		}
		f.Shutdown()
	})
}

func TestWaitForCacheSyncEndsWithStop(t *testing.T) {
	f := dynamicinformer.NewDynamicSharedInformerFactory(nil, 0)
	f.ForResource(widgets)
	stop := make(chan struct{})
	f.Start(stop)
	close(stop)
	if diff := cmp.Diff(map[schema.GroupVersionResource]bool{widgets: false},
		f.WaitForCacheSync(stop)); diff != "" {
		t.Errorf("synced (-want +got):\n%s", diff)
	}
	f.Shutdown()
}
