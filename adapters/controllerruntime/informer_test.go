package controllerruntime

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

type handlerCall struct {
	event   string
	object  any
	initial bool
}

// recorder is a handler that sends its calls.
type recorder chan handlerCall

func (r recorder) OnAdd(object any, initial bool) { r <- handlerCall{"add", object, initial} }
func (r recorder) OnUpdate(_, object any)         { r <- handlerCall{"update", object, false} }
func (r recorder) OnDelete(object any)            { r <- handlerCall{"delete", object, false} }

// addRecorder adds a recorder to the informer of an object's type.
func addRecorder(t *testing.T, c *Cache, object client.Object,
	options ...cache.InformerGetOption) (recorder, cache.Informer) {
	t.Helper()
	i, err := c.GetInformer(t.Context(), object, options...)
	must(t, err)
	calls := make(recorder, 10)
	if _, err := i.AddEventHandler(calls); err != nil {
		t.Fatal(err)
	}
	return calls, i
}

// TestHandlersGetTheirForm verifies that handlers receive objects of the requested form, all from one
// informer.
func TestHandlersGetTheirForm(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "key", "value"))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	for _, name := range []string{"typed", "unstructured", "metadata"} {
		form := emptyForms()[name]
		t.Run(name, func(t *testing.T) {
			i, err := c.GetInformer(t.Context(), form)
			must(t, err)
			calls := make(recorder, 10)
			registration, err := i.AddEventHandler(calls)
			must(t, err)
			got := <-calls
			if reflect.TypeOf(got.object) != reflect.TypeOf(form) || got.event != "add" || !got.initial ||
				got.object.(client.Object).GetName() != "a" {
				t.Errorf("the handler received %+v, want the initial add of object %q as %T", got, "a", form)
			}
			<-registration.HasSyncedChecker().Done()
			gvk := got.object.(client.Object).GetObjectKind().GroupVersionKind()
			if want := name != "typed"; (gvk == configMapKind) != want {
				t.Errorf("the object has the kind %q, want a kind: %v", gvk, want)
			}
			server.Update(t, configMaps, configMap("web", "a", "key", name))
			if got := <-calls; got.event != "update" {
				t.Errorf("the handler received %+v, want an update", got)
			}
			must(t, i.RemoveEventHandler(registration))
		})
	}
	if n := len(c.Factory().Informers()); n != 1 {
		t.Errorf("%d informers for three forms, want 1", n)
	}
}

// TestMetadataReadsRequestOnlyMetadata verifies that if no whole objects are read, only metadata is
// requested.
func TestMetadataReadsRequestOnlyMetadata(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "key", "value"))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	partial := emptyForms()["metadata"].(*metav1.PartialObjectMetadata)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, partial); err != nil ||
		partial.Kind != "ConfigMap" {
		t.Errorf("Get() of metadata = %v with the kind %v, want ConfigMap", err, partial.TypeMeta)
	}
	if got := c.Factory().Stats()[0].Storage; got != dynamicinformer.StorageMetadata.String() {
		t.Errorf("storage mode = %s, want metadata", got)
	}
}

// TestRemoveInformer removes one form after the other. The informer must stop with the last one.
func TestRemoveInformer(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	var informers []cache.Informer
	calls := map[string]recorder{}
	for name, form := range emptyForms() {
		i, err := c.GetInformer(t.Context(), form)
		must(t, err)
		calls[name] = make(recorder, 10)
		if _, err := i.AddEventHandler(calls[name]); err != nil {
			t.Fatal(err)
		}
		<-calls[name]
		informers = append(informers, i)
	}
	must(t, c.RemoveInformer(t.Context(), emptyForms()["typed"]))
	server.Create(t, configMaps, configMap("web", "b"))
	<-calls["unstructured"]
	<-calls["metadata"]
	if len(calls["typed"]) != 0 {
		t.Error("a handler of a removed informer was called")
	}
	stopped := 0
	for _, i := range informers {
		if i.IsStopped() {
			stopped++
			if _, err := i.AddEventHandler(calls["typed"]); !errors.Is(err, dynamicinformer.ErrStopped) {
				t.Errorf("AddEventHandler() of a removed informer = %v, want ErrStopped", err)
			}
		}
	}
	if stopped != 1 {
		t.Errorf("%d of 3 informers are stopped, want 1", stopped)
	}
	if err := errors.Join(c.RemoveInformer(t.Context(), emptyForms()["unstructured"]),
		c.RemoveInformer(t.Context(), emptyForms()["metadata"])); err != nil {
		t.Fatal(err)
	}
	for _, i := range c.Factory().Informers() {
		t.Errorf("informer remains: %s", i.Status())
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "b"},
		&corev1.ConfigMap{}); err != nil {
		t.Errorf("Get() after the informer was removed = %v", err)
	}
}

func TestUnsyncedIsATimeout(t *testing.T) {
	server := newServer(t)
	server.AddFaults(apitest.Fault{Path: "/api/v1/configmaps", Status: http.StatusForbidden})
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	i, err := c.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	must(t, err)
	informer := c.Factory().Informers()[0]
	for current, changed := informer.StatusChange(); current.Reason != status.ReasonForbidden; current,
		changed = informer.StatusChange() {
		<-changed
	}
	cancel()
	for operation, err := range map[string]error{
		"Get":         c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "a"}, &corev1.ConfigMap{}),
		"List":        c.List(ctx, &corev1.ConfigMapList{}),
		"GetInformer": func() error { _, err := c.GetInformer(ctx, &corev1.ConfigMap{}); return err }(),
	} {
		if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "out of order") {
			t.Errorf("%s: error %v, want a timeout with the reason", operation, err)
		}
	}
	if i.HasSynced() {
		t.Error("HasSynced() = true although all requests fail")
	}
	if c.WaitForCacheSync(ctx) {
		t.Error("WaitForCacheSync() = true although all requests fail")
	}
	server.Repair()
	informer.Retry()
	if err := c.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
		t.Errorf("List() after the faults ended = %v", err)
	}
}

// invalidConfigMap returns an object that does not fit corev1.ConfigMap.
func invalidConfigMap(namespace, name string) *unstructured.Unstructured {
	u := configMap(namespace, name)
	u.Object["data"] = map[string]any{"key": map[string]any{"not": "text"}}
	return u
}

// TestMisfits verifies that reading an object that does not fit the Go type returns an error. Other objects
// stay readable.
func TestMisfits(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"), invalidConfigMap("web", "b"))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	var found corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, &found); err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "b"}, &found); err == nil ||
		!strings.Contains(err.Error(), "ConfigMap web/b does not fit *v1.ConfigMap") {
		t.Errorf("Get() = %v, want an error about ConfigMap web/b", err)
	}
	if err := c.List(t.Context(), &corev1.ConfigMapList{}); err == nil ||
		!strings.Contains(err.Error(), "web/b") {
		t.Errorf("List() = %v, want an error about web/b", err)
	}
	calls, _ := addRecorder(t, c, &corev1.ConfigMap{})
	if got := (<-calls).object.(client.Object).GetName(); got != "a" {
		t.Errorf("the handler received %s, want a", got)
	}
	server.Delete(t, configMaps, "web", "b")
	got := <-calls
	if deleted := got.object.(*corev1.ConfigMap); got.event != "delete" || deleted.Name != "b" ||
		deleted.Namespace != "web" || deleted.UID == "" {
		t.Errorf("the handler received %+v, want the deletion of web/b with its UID", got)
	}
	server.Create(t, configMaps, invalidConfigMap("web", "c"))
	server.Update(t, configMaps, configMap("web", "c"))
	if got := <-calls; got.event != "add" || got.initial || got.object.(client.Object).GetName() != "c" {
		t.Errorf("the handler received %+v, want an addition of c, which fits now", got)
	}
}

// TestIndexField verifies that each form has its own index of a field, also one that is added after the
// start. TestCacheSuite lists by indexes.
func TestIndexField(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"), configMap("db", "a"))
	c := newCache(t, server, cache.Options{}, Options{})
	index := func(field string) {
		t.Helper()
		values := func(o client.Object) []string { return []string{o.GetNamespace()} }
		for _, form := range emptyForms() {
			must(t, c.IndexField(t.Context(), form, field, values))
			if err := c.IndexField(t.Context(), form, field, values); err == nil ||
				!strings.Contains(err.Error(), "indexer conflict") {
				t.Errorf("IndexField() of an existing field = %v, want a conflict", err)
			}
		}
	}
	index("before")
	start(t, c)
	index("after") // with objects in the cache
	for name, list := range lists() {
		for _, field := range []string{"before", "after"} {
			for namespace, want := range map[string]int{"": 1, "db": 1, "we": 0} {
				list := list.DeepCopyObject().(client.ObjectList)
				if err := c.List(t.Context(), list, client.InNamespace(namespace),
					client.MatchingFields{field: "db"}); err != nil {
					t.Fatal(err)
				}
				if got := len(objectNames(t, list)); got != want {
					t.Errorf("%s: %d objects of namespace %q by the field %s, want %d", name, got, namespace, field, want)
				}
			}
		}
		if err := c.List(t.Context(), list, client.MatchingFields{"data.shape": "round"}); err == nil ||
			err.Error() != "Index with name field:data.shape does not exist" {
			t.Errorf("%s: List() by a missing index = %v, want an error", name, err)
		}
	}
	var indexNames []string
	for _, s := range c.Factory().Stats() {
		for _, x := range s.Indexes {
			indexNames = append(indexNames, x.Name)
		}
	}
	if !slices.Contains(indexNames, "field:after") || !slices.Contains(indexNames, "field:after (unstructured)") {
		t.Errorf("the indexes are %q, want one for each form", indexNames)
	}
}

// TestDefaultWatchErrorHandlerOfSharedFactory verifies that the handler does not receive failures of other
// users.
func TestDefaultWatchErrorHandlerOfSharedFactory(t *testing.T) {
	server := newServer(t)
	server.AddFaults(apitest.Fault{Path: "/api/v1/configmaps", Status: http.StatusForbidden},
		apitest.Fault{Path: "/api/v1/namespaces", Status: http.StatusForbidden})
	factory := newFactory(t, server)
	failed := make(chan string, 100)
	c := newCache(t, server, cache.Options{DefaultWatchErrorHandler: func(_ context.Context,
		r *toolscache.Reflector, _ error) {
		failed <- r.TypeDescription()
	}}, Options{Factory: factory})
	start(t, c)
	reported := make(chan status.RequestFailure, 100)
	_, err := factory.AddListener(
		status.Listener{RequestFailed: func(f status.RequestFailure) { reported <- f }})
	must(t, err)
	other, err := factory.Acquire(configMaps)
	must(t, err)
	defer other.Release()
	<-reported
	if _, err := c.GetInformer(t.Context(), &corev1.Namespace{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	if got := <-failed; !strings.Contains(got, "namespaces") {
		t.Errorf("the handler received the failure %q, want one of namespaces", got)
	}
}

// TestHandlersOfStoppedControllers verifies that the handler of a source is removed when its controller
// stops, and that the status of the informer is that of its type.
func TestHandlersOfStoppedControllers(t *testing.T) {
	server := newServer(t)
	c := newCache(t, server, cache.Options{}, Options{})
	if all, err := c.Status(&corev1.ConfigMap{}); err != nil || len(all) != 0 {
		t.Errorf("Status() without an informer = %v, %v, want none", all, err)
	}
	start(t, c)
	ctx, stopController := context.WithCancel(t.Context())
	limiter := workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	defer queue.ShutDown()
	watch := source.Kind(c, &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{})
	must(t, errors.Join(watch.Start(ctx, queue), watch.WaitForSync(ctx)))
	handlers := func() int { return len(c.Factory().Informers()[0].Handlers()) }
	if n := handlers(); n != 1 {
		t.Fatalf("%d handlers of one source, want 1", n)
	}
	stopController()
	eventually(t, "the removal of the handler", func() bool { return handlers() == 0 })
	all, err := c.Status(&corev1.ConfigMap{})
	if err != nil || len(all) != 1 || all[0].State != status.Synced {
		t.Errorf("Status() = %v, %v, want Synced", all, err)
	}
	if err := c.SetTypeSettings(t.Context(), &corev1.ConfigMap{},
		TypeSettings{Versions: dynamicinformer.PreferredVersion()}); err != nil {
		t.Fatal(err)
	}
	if all, _ := c.Status(&corev1.ConfigMap{}); !strings.Contains(all[0].Options, "preferred") {
		t.Errorf("after the change of the version policy the informer has the options %q, want preferred", all[0].Options)
	}
}
