package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// liveObject returns ConfigMap "a" of the server.
func liveObject(t *testing.T, server *apitest.Server) *unstructured.Unstructured {
	t.Helper()
	resource := server.Client(t).Resource(configMaps).Namespace("web")
	u, err := resource.Get(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	return u
}

// TestReplacedAnnotations verifies that an object is still reduced after its caller has replaced its
// annotations, with which the mark for the server is lost. A patch would replace only the annotations that
// the cache has.
func TestReplacedAnnotations(t *testing.T) {
	server, c := newReduced(t, cache.Options{}, Options{Keep: keepsTitle, ReducedGet: GetReduced})
	guarded := clientsOf(t, server, c)["guarded"]
	for form, object := range emptyForms() {
		if form == "metadata" {
			continue
		}
		for name, replaced := range map[string]map[string]string{"none": nil, "another": {"note": form}} {
			t.Run(form+"/"+name, func(t *testing.T) {
				key := client.ObjectKey{Namespace: "web", Name: "a"}
				must(t, guarded.Get(t.Context(), key, object))
				before := object.DeepCopyObject().(client.Object)
				object.SetAnnotations(replaced)
				var reduced *ReducedError
				if err := guarded.Update(t.Context(), object); !errors.As(err, &reduced) {
					t.Errorf("Update() = %v, want a ReducedError", err)
				}
				if err := guarded.Patch(t.Context(), object, client.Merge); !errors.As(err, &reduced) {
					t.Errorf("Patch() with the object = %v, want a ReducedError", err)
				}
				err := guarded.Patch(t.Context(), object, client.MergeFrom(before))
				if !errors.As(err, &reduced) {
					t.Errorf("Patch() = %v, want a ReducedError", err)
				}
				live := liveObject(t, server)
				if got := contentOf(t, live); got != wholeA || len(live.GetAnnotations()) > 0 {
					t.Errorf("the server has %s and annotations %v, want %s and none", got,
						live.GetAnnotations(), wholeA)
				}
			})
		}
	}
}

// TestReplacedMaps verifies that a patch that replaces a map of which the cache drops keys is rejected. A
// patch that changes a key, adds one, or changes fields of a struct is not.
func TestReplacedMaps(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "title", "A", "text", "long", "second", "B"))
	w := object(widgetKind, "web", "w")
	w.Object["spec"] = map[string]any{"shown": "a", "hidden": "b", "nested": map[string]any{"shown": "a", "b": "c"}}
	server.Create(t, widgets, w)
	c := newCache(t, server, cache.Options{}, Options{ReducedGet: GetReduced, Keep: dynamicinformer.Keep{
		Paths: []string{".data.title", ".data.second", ".spec.shown", ".spec.nested.shown"}}})
	start(t, c)
	guarded := clientsOf(t, server, c)["guarded"]
	examples := emptyForms()
	delete(examples, "metadata")
	examples["widget"] = object(widgetKind, "", "")
	for form, example := range examples {
		name, field, key := "a", "data", "title"
		if form == "widget" {
			name, field, key = "w", "spec", "shown"
		}
		for change, test := range map[string]struct {
			change  func(fields map[string]any) // of the map
			rejects bool
		}{
			"replace": {func(m map[string]any) { clear(m); m["new"] = "n" }, true},
			// Without the field, as Go encodes an empty map, the server removes the whole map.
			"empty":  {func(m map[string]any) { clear(m) }, form != "typed"},
			"others": {func(m map[string]any) { clear(m); m[key] = "other" }, true},
			"set":    {func(m map[string]any) { m[key] = "changed" }, false},
			"add":    {func(m map[string]any) { m["new"] = "n" }, false},
			"remove": {func(m map[string]any) { delete(m, key) }, false},
			"nested": {func(m map[string]any) {
				if form == "widget" {
					m["nested"] = map[string]any{"c": "d"}
				}
			}, form == "widget"},
		} {
			for _, strategic := range []bool{false, true} {
				if strategic && form != "typed" {
					continue // it needs a Go type
				}
				awaitVersion(t, server, c)
				before := example.DeepCopyObject().(client.Object)
				if err := guarded.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: name},
					before); err != nil {
					t.Fatal(err)
				}
				fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(
					before.DeepCopyObject())
				must(t, err)
				test.change(fields[field].(map[string]any))
				after := before.DeepCopyObject().(client.Object)
				if u, ok := after.(*unstructured.Unstructured); ok {
					u.Object = fields
				} else {
					after = &corev1.ConfigMap{}
					err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, after)
					must(t, err)
				}
				patch := client.MergeFrom(before)
				if strategic {
					patch = client.StrategicMergeFrom(before)
				}
				err = guarded.Patch(t.Context(), after, patch, client.DryRunAll)
				var reduced *ReducedError
				if errors.As(err, &reduced) != test.rejects || err != nil && !test.rejects && !strategic {
					t.Errorf("%s %s, strategic %v: Patch() = %v, want a ReducedError: %v", form, change, strategic, err,
						test.rejects)
				}
			}
		}
	}
}

// TestExtractFails verifies that an apply configuration cannot be extracted from a reduced object, whether or
// not the cache keeps managedFields, and that the client warns once if they are stripped.
func TestExtractFails(t *testing.T) {
	for name, keep := range map[string]dynamicinformer.Keep{"dropped": keepsTitle,
		"kept": {Paths: []string{".data.title", ".metadata.managedFields"}}} {
		server := newServer(t)
		applied := configMap("web", "a", "title", "A", "text", "long")
		applied.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "owner", Operation: "Apply",
			APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{"f:title":{},"f:text":{}}}`)}}})
		server.Create(t, configMaps, applied)
		c := newCache(t, server, cache.Options{}, Options{Keep: keep, ReducedGet: GetReduced})
		start(t, c)
		guarded := clientsOf(t, server, c)["guarded"]
		got := &corev1.ConfigMap{}
		must(t, guarded.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, got))
		for _, owner := range []string{"owner", "another"} {
			_, err := corev1ac.ExtractConfigMap(got, owner)
			if err == nil || !strings.Contains(err.Error(), "GetLive") {
				t.Errorf("%s: ExtractConfigMap(%s) = %v, want an error with the reason", name, owner, err)
			}
		}
		listed := &corev1.ConfigMapList{}
		must(t, guarded.List(t.Context(), listed))
		if _, err := corev1ac.ExtractConfigMap(&listed.Items[0], "owner"); err == nil {
			t.Errorf("%s: ExtractConfigMap() of a listed object returned no error", name)
		}
		live := liveObject(t, server)
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, got))
		if all, err := corev1ac.ExtractConfigMap(got, "owner"); err != nil || all.Data["text"] != "long" {
			t.Errorf("%s: ExtractConfigMap() of the object of the server = %v, %v", name, all, err)
		}
	}
	server := newServer(t)
	var lines atomic.Int32
	logger := funcr.New(func(_, line string) {
		if strings.Contains(line, "managedFields") {
			lines.Add(1)
		}
	}, funcr.Options{})
	for _, transform := range []toolscache.TransformFunc{nil, cache.TransformStripManagedFields()} {
		c := newCache(t, server, cache.Options{DefaultTransform: transform}, Options{})
		start(t, c)
		guarded := clientsOf(t, server, c)["guarded"]
		must(t, guarded.List(t.Context(), &corev1.ConfigMapList{}))
		for range 2 {
			// This server does not serve it.
			_ = guarded.Apply(klog.NewContext(t.Context(), logger), corev1ac.ConfigMap("b", "web"),
				client.FieldOwner("owner"))
		}
		if n := lines.Load(); (n == 1) != (transform != nil) {
			t.Errorf("stripped %v: %d warnings, want 1 if managedFields are stripped", transform != nil, n)
		}
	}
}

// TestReducedHelpers verifies that the helpers of controller-runtime change an object without a loss of
// dropped fields, or fail, whatever the policy of Get is.
func TestReducedHelpers(t *testing.T) {
	const finalizer = "example.com/mine"
	for _, policy := range []ReducedGet{GetLive, GetFails, GetReduced} {
		for form := range emptyForms() {
			if form == "metadata" {
				continue
			}
			t.Run(fmt.Sprint(policy, "/", form), func(t *testing.T) {
				server, c := newReduced(t, cache.Options{}, Options{Keep: keepsTitle, ReducedGet: policy})
				guarded := clientsOf(t, server, c)["guarded"]
				empty := func() client.Object {
					object := emptyForms()[form]
					object.SetNamespace("web")
					object.SetName("a")
					return object
				}
				listed := func() client.Object {
					t.Helper()
					list := lists()[form]
					must(t, c.List(t.Context(), list, client.InNamespace("web")))
					return itemNamed(t, list, "a")
				}
				finalize := func(object client.Object) func() error {
					return func() error {
						controllerutil.AddFinalizer(object, finalizer)
						return nil
					}
				}
				for name, write := range map[string]struct {
					do func(ctx context.Context) error
					// fails has the policies with which the helper fails.
					fails []ReducedGet
				}{
					"CreateOrUpdate": {func(ctx context.Context) error {
						object := empty()
						_, err := controllerutil.CreateOrUpdate(ctx, guarded, object, finalize(object))
						return err
					}, []ReducedGet{GetFails, GetReduced}},
					"CreateOrPatch": {func(ctx context.Context) error {
						object := empty()
						_, err := controllerutil.CreateOrPatch(ctx, guarded, object, finalize(object))
						return err
					}, []ReducedGet{GetFails}},
					"an element of a list": {func(ctx context.Context) error {
						object := listed()
						controllerutil.AddFinalizer(object, finalizer)
						return guarded.Update(ctx, object)
					}, []ReducedGet{GetLive, GetFails, GetReduced}},
					"an optimistic patch": {func(ctx context.Context) error {
						object := listed()
						patch := client.MergeFromWithOptions(object.DeepCopyObject().(client.Object),
							client.MergeFromWithOptimisticLock{})
						controllerutil.AddFinalizer(object, finalizer)
						return guarded.Patch(ctx, object, patch)
					}, nil},
					"an owner": {func(ctx context.Context) error {
						object, owner := listed(), empty()
						owner.SetName("owner")
						owner.SetUID("u")
						patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
						controllerutil.AddFinalizer(object, finalizer)
						err := controllerutil.SetControllerReference(owner, object, scheme.Scheme)
						return errors.Join(err, guarded.Patch(ctx, object, patch))
					}, nil},
				} {
					awaitVersion(t, server, c) // of the writes before
					err := write.do(t.Context())
					var reduced *ReducedError
					fails := slices.Contains(write.fails, policy)
					if errors.As(err, &reduced) != fails || err != nil && !fails {
						t.Errorf("%s: got the error %v, want a ReducedError: %v", name, err, fails)
					}
					live := liveObject(t, server)
					if got := contentOf(t, live); got != wholeA ||
						controllerutil.ContainsFinalizer(live, finalizer) == fails {
						t.Errorf("%s: the server has %s with finalizers %v, want %s, with the finalizer: %v",
							name, got, live.GetFinalizers(), wholeA, !fails)
					}
					live.SetFinalizers(nil)
					live.SetOwnerReferences(nil)
					server.Update(t, configMaps, live)
				}
				awaitVersion(t, server, c)
				stale := listed()
				changed := map[string]string{"changed": "yes"}
				server.Update(t, configMaps, labelled(liveObject(t, server), changed))
				patch := client.MergeFromWithOptions(stale.DeepCopyObject().(client.Object),
					client.MergeFromWithOptimisticLock{})
				controllerutil.AddFinalizer(stale, finalizer)
				if err := guarded.Patch(t.Context(), stale, patch); !apierrors.IsConflict(err) {
					t.Errorf("Patch() of an old version with an optimistic lock = %v, want a conflict", err)
				}
				if err := guarded.DeleteAllOf(t.Context(), empty(), client.InNamespace("web")); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestReusedObject verifies that an object into which a reduced one was read is whole after a read from the
// server, and still reduced after a failed one.
func TestReusedObject(t *testing.T) {
	server, c := newReduced(t, cache.Options{}, Options{Keep: keepsTitle, ReducedGet: GetReduced})
	config := server.Config()
	config.ContentType = "application/json"
	uncached, err := NewClient(config, client.Options{Mapper: newMapper(),
		Cache: &client.CacheOptions{Reader: c, DisableFor: []client.Object{emptyForms()["typed"]}}})
	must(t, err)
	for form, object := range emptyForms() {
		if form == "metadata" {
			continue
		}
		key := client.ObjectKey{Namespace: "web", Name: "a"}
		if err := c.Get(t.Context(), key, object); err != nil || !IsReduced(object) {
			t.Fatalf("%s: Get = %v, %v; want a reduced object", form, object, err)
		}
		failed := uncached.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "missing"}, object)
		if !apierrors.IsNotFound(failed) || !IsReduced(object) {
			t.Errorf("%s: Get of a missing object: %v, IsReduced = %t; want NotFound and the object unchanged", form,
				failed, IsReduced(object))
		}
		if err := uncached.Get(t.Context(), key, object); err != nil || contentOf(t, object) != wholeA {
			t.Errorf("%s: Get from the server = %s, %v, want %s", form, contentOf(t, object), err, wholeA)
		}
		if err := uncached.Update(t.Context(), object); err != nil {
			t.Errorf("%s: Update: %v", form, err)
		}
	}
}

// TestFactoryReduces verifies that a cache of a shared factory marks the objects that the factory's keep-list
// reduces, also if it strips managed fields.
func TestFactoryReduces(t *testing.T) {
	for name, options := range map[string]cache.Options{"": {},
		"stripped": {DefaultTransform: cache.TransformStripManagedFields()}} {
		for _, keep := range []dynamicinformer.Keep{keepsTitle, {Paths: keepsTitle.Paths}} {
			server := newServer(t)
			server.Create(t, configMaps, configMap("web", "a", "title", "A", "text", "long"))
			factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server.Config(),
				Defaults: dynamicinformer.ResourceOptions{Keep: keep}})
			must(t, err)
			t.Cleanup(func() { _ = factory.Shutdown(context.Background()) })
			c := newCache(t, server, options, Options{Factory: factory})
			start(t, c)
			for form, object := range emptyForms() {
				if form == "metadata" {
					continue
				}
				key := client.ObjectKey{Namespace: "web", Name: "a"}
				if err := c.Get(t.Context(), key, object); err != nil || contentOf(t, object) != wholeA {
					t.Errorf("%s %s: Get = %s, %v, want %s", name, form, contentOf(t, object), err, wholeA)
				}
				list := lists()[form]
				must(t, c.List(t.Context(), list))
				if got := contentsOf(t, list)["a"]; got != reducedA {
					t.Errorf("%s %s: the list has %s, want %s", name, form, got, reducedA)
				}
			}
		}
	}
}

// TestDroppedIndexFields verifies that a list by an index of the config fails if the cache drops a field that
// the index reads, and names the field.
func TestDroppedIndexFields(t *testing.T) {
	config := configOf(t, `indexes: [{name: text, path: .data.text}, {name: title, path: .data.title}]`)
	for name, options := range map[string]Options{"keep": {Keep: keepsTitle},
		"prune": {Prune: dynamicinformer.Prune{Paths: []string{".data.text"}}}} {
		options.Indexes = config
		_, c := newReduced(t, cache.Options{}, options)
		list := lists()["typed"]
		err := c.List(t.Context(), list, client.MatchingFields{"text": "long"})
		if err == nil || !strings.Contains(err.Error(), "reads .data.text") {
			t.Errorf("%s: List by the index text = %v, want an error that names .data.text", name, err)
		}
		err = c.List(t.Context(), list, client.MatchingFields{"title": "A"})
		if err != nil || itemNamed(t, list, "a") == nil {
			t.Errorf("%s: List by the index title = %v, %v, want object a", name, list, err)
		}
	}
}

// itemNamed returns a pointer to the item of a list with a name.
func itemNamed(t *testing.T, list client.ObjectList, name string) (found client.Object) {
	t.Helper()
	for _, item := range itemsOf(t, list) {
		if item.GetName() == name {
			found = item
		}
	}
	return found
}
