package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
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
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestReplacedAnnotations verifies that an object is still reduced after its caller has replaced its
// annotations, with which the mark for the server is lost. A patch replaces the annotations that the cache
// has, but not all of them.
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
				if err := guarded.Get(t.Context(), key, object); err != nil {
					t.Fatal(err)
				}
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
				if errors.As(err, &reduced) != (replaced == nil) || err != nil && replaced != nil {
					t.Errorf("Patch() = %v, want a ReducedError: %v", err, replaced == nil)
				}
				live := liveObject(t, server)
				if got := contentOf(t, live); got != wholeA || replaced != nil &&
					fmt.Sprint(live.GetAnnotations()) != fmt.Sprint(replaced) {
					t.Errorf("the server has %s and annotations %v, want %s and %v", got,
						live.GetAnnotations(), wholeA, replaced)
				}
			})
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
					if err := c.List(t.Context(), list, client.InNamespace("web")); err != nil {
						t.Fatal(err)
					}
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
	if err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
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
				if err := c.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
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
