package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// startCacheWith returns a cache and the config of its server.
func startCacheWith(t *testing.T,
	options controllerruntime.Options) (*controllerruntime.Cache, *rest.Config) {
	t.Helper()
	config := harness.Config(t)
	config.QPS = -1
	c, err := controllerruntime.New(config, cache.Options{}, options)
	must(t, err)
	runCache(t, c)
	return c, config
}

// runCache runs a cache until the test ends, and waits until it has synced.
func runCache(t *testing.T, c cache.Cache) {
	t.Helper()
	testkit.RunUntilEnd(t, c.Start)
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("timed out waiting for the cache's sync")
	}
}

func newConsistentClient(t *testing.T, config *rest.Config, reader client.Reader,
	options client.Options) client.Client {
	t.Helper()
	options.Cache = &client.CacheOptions{Reader: reader, Unstructured: true,
		EnableReadYourWritesConsistency: new(true)}
	made, err := controllerruntime.NewClient(config, options)
	must(t, err)
	return made
}

// TestReadYourWritesSharded verifies that deleting an object of another shard does not block later lists. A
// client for dry runs never waits.
func TestReadYourWritesSharded(t *testing.T) {
	assigner, err := shard.Static(0, 64, 64)
	must(t, err)
	s, err := controllerruntime.NewSharding(controllerruntime.ShardingOptions{Assigner: assigner,
		Key: sharding.ByUID, Objects: []client.Object{&corev1.ConfigMap{}}})
	must(t, err)
	namespace := harness.Namespace(t)
	renewLease(t)
	sharded, config := startCacheWith(t, controllerruntime.Options{Sharding: s})
	c := newConsistentClient(t, config, sharded, client.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }() // ended by cancel
	for n := range 3 {                    // these objects are nearly always in other shards
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("a", n)}}
		must(t, c.Create(ctx, o))
		must(t, c.Delete(ctx, o))
		began := time.Now()
		var list corev1.ConfigMapList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil || len(list.Items) != 0 {
			t.Fatalf("List() = %d objects, %v, want none", len(list.Items), err)
		}
		t.Logf("the list took %v", time.Since(began))
	}
	dryRun := newConsistentClient(t, config, sharded, client.Options{DryRun: new(true)})
	if err := dryRun.List(ctx, &corev1.ConfigMapList{}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestConsistentClient reads its own writes through controller-runtime's client. The client's event handler
// decodes no object. The client records writes of unstructured objects as writes of structs, so the test uses
// only structs.
func TestConsistentClient(t *testing.T) {
	w := widgets{schema.GroupVersion{Group: harness.Group(t), Version: "v1"}}
	harness.InstallCRDs(t, harness.NewCRD(w.Group, "Widget"))
	shared := startCache(t, cache.Options{Scheme: w.scheme()})
	c, err := client.New(harness.Config(t), client.Options{Scheme: w.scheme(), Cache: &client.CacheOptions{
		Reader: shared, EnableReadYourWritesConsistency: new(true)}})
	must(t, err)
	o := w.typed()
	o.SetNamespace(harness.Namespace(t))
	o.SetName("a")
	must(t, c.Create(t.Context(), o))
	for n := range 20 {
		o.SetAnnotations(map[string]string{"a": fmt.Sprint(n)})
		must(t, c.Update(t.Context(), o))
		read := w.typed()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), read); err != nil ||
			read.GetResourceVersion() != o.GetResourceVersion() {
			t.Fatalf("Get() returned version %s, want the written version %s (%v)", read.GetResourceVersion(),
				o.GetResourceVersion(), err)
		}
	}
	all := shared.(*controllerruntime.Cache).Factory().Informers()[0].Handlers()
	if len(all) != 1 || !strings.Contains(all[0].Name, "ConsistencyHandler") || all[0].DecodesBecause != "" {
		t.Errorf("Handlers() = %+v, want one ConsistencyHandler that decodes nothing", all)
	}
}

// renewLease updates a Lease five times a second until the test ends, so that resource versions increase as
// in a cluster with controllers.
func renewLease(t testing.TB) {
	t.Helper()
	client, err := dynamic.NewForConfig(harness.Config(t))
	must(t, err)
	leases := client.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1",
		Resource: "leases"}).Namespace(harness.Namespace(t))
	ctx, cancel := context.WithCancel(context.Background())
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
	o.SetName("busy")
	o, err = leases.Create(ctx, o, metav1.CreateOptions{})
	must(t, err)
	ended := make(chan struct{})
	go func() { // ended by the cleanup
		defer close(ended)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			o.SetAnnotations(map[string]string{"n": fmt.Sprint(n)})
			updated, err := leases.Update(ctx, o, metav1.UpdateOptions{})
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			o = updated
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// acceptRecorder records the Accept headers and status codes of requests for ConfigMaps.
type acceptRecorder struct {
	http.RoundTripper
	mu       sync.Mutex
	recorded []string
}

func (r *acceptRecorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if err == nil && strings.HasSuffix(request.URL.Path, "/configmaps") {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.recorded = append(r.recorded, fmt.Sprint(response.StatusCode, " ", request.Header.Get("Accept")))
	}
	return response, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper for client-go.
func (r *acceptRecorder) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }

// TestServersAcceptDrop verifies that a server answers lists and watches that request objects without
// managedFields at the first attempt, whether or not it knows the parameter (KEP-5958).
func TestServersAcceptDrop(t *testing.T) {
	for name, options := range map[string]dynamicinformer.ResourceOptions{
		"watch-list":     {},
		"list and watch": {WatchBookmarks: new(bool)},
		"metadata":       {Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}},
	} {
		t.Run(name, func(t *testing.T) {
			configMaps := corev1.SchemeGroupVersion.WithResource("configmaps")
			namespace, config, recorder := harness.Namespace(t), harness.Config(t), &acceptRecorder{}
			resource := dynamic.NewForConfigOrDie(config).Resource(configMaps).Namespace(namespace)
			create := func(name string) *unstructured.Unstructured {
				t.Helper()
				u := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"a": "b"}}}
				u, err := resource.Create(t.Context(), u, metav1.CreateOptions{})
				must(t, err)
				return u
			}
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				recorder.RoundTripper = next
				return recorder
			})
			options.Namespaces = dynamicinformer.InNamespaces(namespace)
			options.Prune.Presets = []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields}
			f, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Defaults: options})
			must(t, err)
			i, err := f.ForResource(configMaps)
			must(t, err)
			before := create("listed")
			must(t, errors.Join(f.Start(t.Context()), f.WaitForSync(t.Context())))
			for _, want := range []*unstructured.Unstructured{before, create("watched")} {
				must(t, i.WaitForVersion(t.Context(), want.GetResourceVersion()))
				got, err := i.Lister().ByNamespace(namespace).Get(want.GetName())
				must(t, err)
				want.SetManagedFields(nil)
				cached := got.(*unstructured.Unstructured).Object
				if i.StoresOnlyMetadata() {
					cached = cached["metadata"].(map[string]any)
					want.Object = want.Object["metadata"].(map[string]any)
				}
				if diff := cmp.Diff(want.Object, cached); diff != "" {
					t.Errorf("%s (-server +cache):\n%s", want.GetName(), diff)
				}
			}
			if err := f.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if len(recorder.recorded) == 0 {
				t.Error("no requests are recorded")
			}
			for _, request := range recorder.recorded {
				if !strings.HasPrefix(request, "200 application/json;") ||
					!strings.Contains(request, ";drop=metadata.managedFields,") {
					t.Errorf("the request %s does not drop the managed fields", request)
				}
			}
		})
	}
}
