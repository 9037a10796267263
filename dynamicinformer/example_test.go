package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// cluster is a minimal API server with two widgets. It forbids reading gadgets.
func cluster() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path != "/apis/example.com/v1/widgets":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(
				w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"you may not list gadgets"}`)
		case r.URL.Query().Get("sendInitialEvents") != "": // as servers without watch-lists do
			w.WriteHeader(http.StatusUnprocessableEntity)
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[
				{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"namespace":"web","name":"a"},"spec":{"color":"red"}},
				{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"namespace":"web","name":"b"},"spec":{"color":"blue"}}]}`)
		}
	}))
}

// Follow a type without a Go type for it, and read it from the cache: by key and by an index of your own.
func Example() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Config: &rest.Config{Host: server.URL},
		Defaults: dynamicinformer.ResourceOptions{
			Prune: dynamicinformer.Prune{
				Presets: []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields}},
		},
		Resources: map[schema.GroupVersionResource]dynamicinformer.ResourceOptions{
			widgets: {Indexers: cache.Indexers{"color": func(obj any) ([]string, error) {
				color, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object,
					"spec", "color")
				return []string{color}, nil
			}}},
		},
	})
	must(err)
	defer factory.Shutdown(ctx)

	informer := factory.MustForResource(widgets)
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))

	all, _ := informer.Lister().ByNamespace("web").List(labels.Everything())
	fmt.Println(len(all), "widgets")
	red, _ := informer.GetIndexer().IndexKeys("color", "red")
	fmt.Println("red:", red)

	// Output:
	// 2 widgets
	// red: [web/a]
}

// A type that cannot be read does not keep the others from syncing.
func ExampleFactory_WaitForSync() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: server.URL}})
	must(err)
	defer factory.Shutdown(ctx)
	for _, resource := range []string{"gadgets", "widgets"} {
		factory.MustForResource(widgets.GroupVersion().WithResource(resource))
	}
	must(factory.Start(ctx))

	var missing *dynamicinformer.NotSyncedError
	if err := factory.WaitForSync(ctx); errors.As(err, &missing) {
		for _, s := range missing.NotSynced {
			fmt.Println(s.GVR.Resource, s.State, s.Reason)
		}
		fmt.Println(err)
	}

	// Output:
	// gadgets Degraded Forbidden
	// not synced: gadgets.v1.example.com: Degraded (Forbidden): you may not list gadgets
}

// Receive the events of informers, for metrics, logs and alerts.
func ExampleListener() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Config: &rest.Config{Host: server.URL},
		Listener: status.Listener{
			StateChanged: func(before, after status.Status) {
				if before.State != after.State {
					fmt.Printf("%s: %s\n", after.GVR.Resource, after.State)
				}
			},
			IncarnationSynced: func(g status.Incarnation) { fmt.Println("incarnation", g.Number, "is synced") },
		},
	})
	must(err)
	factory.MustForResource(widgets)
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))
	must(factory.Shutdown(ctx)) // returns when the listener has received all events

	// Output:
	// widgets: Pending
	// widgets: Syncing
	// widgets: Synced
	// incarnation 1 is synced
	// widgets: Stopped
}

// catalog is a type source with only widgets. Programs use the Types of a discovery.Tracker instead.
type catalog struct{}

func (catalog) Subscribe(listener typesource.Listener) (stop func()) {
	listener.SetType(typesource.Type{
		GroupResource: widgets.GroupResource(), Kind: "Widget", Namespaced: true, Versions: []string{"v1"},
		Established: true,
	})
	listener.SetComplete()
	return func() {}
}

// Follow every type of a group, including types that are installed later.
func ExampleFactory_Subscribe() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: server.URL},
		Types: catalog{}})
	must(err)
	must(factory.Start(ctx))
	synced := make(chan struct{})
	objects := 0
	_, err = factory.Subscribe(dynamicinformer.Selection{Group: "*example.com", Resource: "*"},
		dynamicinformer.Subscriber{
			OnAdd: func(schema.GroupVersionResource, *unstructured.Unstructured, bool) { objects++ },
			OnSynced: func(g status.Incarnation) {
				fmt.Println(objects, g.GVR.Resource)
				close(synced)
			},
		})
	must(err)
	<-synced
	must(factory.Shutdown(ctx))

	// Output:
	// 2 widgets
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Cache several clusters with one memory budget. A cluster that cannot be reached delays no other.
func ExampleGroup() {
	ctx := context.Background()
	group, err := dynamicinformer.NewGroup(dynamicinformer.GroupOptions{MemoryBudget: 1 << 30})
	must(err)
	for _, name := range []string{"production", "staging"} {
		server := cluster()
		defer server.Close()
		factory, err := group.Add(name, dynamicinformer.Options{Config: &rest.Config{Host: server.URL}})
		must(err)
		factory.MustForResource(widgets)
		must(factory.Start(ctx))
		must(factory.WaitForSync(ctx))
	}
	for name, factory := range group.All() {
		fmt.Println(name, len(factory.MustForResource(widgets).GetStore().ListKeys()), "widgets")
	}
	_, err = group.Add("staging", dynamicinformer.Options{Config: &rest.Config{Host: "localhost:1"}})
	fmt.Println(errors.Is(err, dynamicinformer.ErrClusterExists))
	must(group.Remove(ctx, "staging"))
	for _, c := range group.Status() {
		fmt.Println(c.Name, "reachable:", c.Reachable.Status)
	}
	must(group.Shutdown(ctx))

	// Output:
	// production 2 widgets
	// staging 2 widgets
	// true
	// production reachable: True
}
