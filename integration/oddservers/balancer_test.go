package oddservers_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/integration/internal/faultproxy"
	"github.com/crdcache/crdcache/integration/internal/witness"
	"github.com/crdcache/crdcache/internal/informer/conformance"
)

// lag is by how many milliseconds one of the API servers is behind. API servers wait 3 s for what they do not know yet, and then say
// that the resource version is too large.
const lag = 4000

// TestLaggingAPIServer: behind a load balancer over two API servers of which one lags, no informer goes back in time: not by a watch
// that goes on at the other one, nor by a list.
func TestLaggingAPIServer(t *testing.T) {
	config := harness.Config(t)
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	gvr := schema.GroupVersionResource{Group: harness.Group(t), Version: "v1", Resource: "boats"}
	harness.InstallCRDs(t, harness.NewCRD(gvr.Group, "Boat"))
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	boats := admin.Resource(gvr).Namespace(harness.Namespace(t))
	f := &fleet{T: t, boats: boats}
	f.launch(gvr, "first")

	etcd := faultproxy.Start(t, harness.EtcdAddress(t))
	lagging := harness.AnotherAPIServer(t, etcd.Address())
	balancer := faultproxy.Start(t, server.Host)
	link := conformance.NewFaults(nil)
	config.Host = "https://" + balancer.Address()
	config.Wrap(link.Wrap)
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := factory.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if f.informer, err = factory.ForResource(gvr); err != nil {
		t.Fatal(err)
	}
	f.witness = witness.New("the informer", nil)
	if _, err := f.informer.AddEventHandler(f.witness); err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.agree()
	defer etcd.Spoil(t, "latency", map[string]any{"latency": lag})()
	for round := range 2 {
		// The informer knows more than the other server when it goes there.
		f.sail(round)
		f.agree()
		watches := link.Requests("watch")
		balancer.Redirect(t, lagging)
		harness.Eventually(t, func(context.Context) error {
			if link.Requests("watch") == watches {
				return fmt.Errorf("there is no watch at the lagging server")
			}
			return nil
		})
		lists := link.Requests("list") + link.Requests("watch-list")
		harness.Eventually(t, func(context.Context) error {
			link.ExpireWatches() // the watch may not have been answered yet
			if link.Requests("list")+link.Requests("watch-list") == lists {
				return fmt.Errorf("there is no list at the lagging server")
			}
			return nil
		})
		f.sail(round)
		f.agree()
		balancer.Redirect(t, server.Host)
		f.sail(round)
		f.agree()
	}
	t.Logf("relists: %+v", f.informer.Status().Relists)
}

// fleet is objects that change, and an informer of them.
type fleet struct {
	*testing.T
	boats    dynamic.ResourceInterface
	gvr      schema.GroupVersionResource
	informer *dynamicinformer.Informer
	witness  *witness.Witness
	value    int64
}

// launch creates a boat.
func (f *fleet) launch(gvr schema.GroupVersionResource, name string) {
	f.Helper()
	f.gvr = gvr
	boat := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": f.value}}}
	boat.SetGroupVersionKind(gvr.GroupVersion().WithKind("Boat"))
	boat.SetName(name)
	if _, err := f.boats.Create(f.Context(), boat, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// sail changes a boat, and creates and deletes one.
func (f *fleet) sail(round int) {
	f.Helper()
	f.value++
	if _, err := f.boats.Patch(f.Context(), "first", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"value":%d}}`, f.value), metav1.PatchOptions{}); err != nil {
		f.Fatal(err)
	}
	name := fmt.Sprintf("boat-%d-%d", round, f.value)
	f.launch(f.gvr, name)
	if f.value%2 == 0 {
		if err := f.boats.Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
	}
}

// agree waits until the informer and its handler know what is on the server that does not lag, and checks what the handler was
// told.
func (f *fleet) agree() {
	f.Helper()
	list, err := f.boats.List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	harness.Eventually(f, func(context.Context) error {
		live := f.witness.Live()
		if len(live) != len(list.Items) || len(f.informer.GetStore().ListKeys()) != len(list.Items) {
			return fmt.Errorf("the handler was told of %d boats, the cache has %d, the server %d; the status is %+v", len(live), len(f.informer.GetStore().ListKeys()), len(list.Items), f.informer.Status())
		}
		for _, boat := range list.Items {
			key := boat.GetNamespace() + "/" + boat.GetName()
			value, _, _ := unstructured.NestedInt64(boat.Object, "spec", "value")
			if want := (witness.Object{UID: boat.GetUID(), Value: value}); live[key] != want {
				return fmt.Errorf("the handler was told of %s %+v, the server has %+v", key, live[key], want)
			}
			if cached, exists, err := f.informer.GetStore().GetByKey(key); err != nil || !exists || cached.(*unstructured.Unstructured).GetResourceVersion() != boat.GetResourceVersion() {
				return fmt.Errorf("the cache has another version of %s than %s (%v)", key, boat.GetResourceVersion(), err)
			}
		}
		return nil
	})
	for _, line := range f.witness.Nonsense() {
		f.Error(line)
	}
}
