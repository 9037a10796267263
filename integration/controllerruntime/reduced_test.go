package controllerruntime_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/controllerruntime"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestReducedObjectsAreRejected verifies that an API server rejects updates with objects of which the cache
// has only some fields, from the default client of a manager: of built-in types and custom resources.
// NewClient rejects updates of their status, too. Patches change only their fields.
func TestReducedObjectsAreRejected(t *testing.T) {
	namespace, group := harness.Namespace(t), harness.Group(t)
	crd := harness.NewCRD(group, "Gauge")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	versions[0].(map[string]any)["subresources"] = map[string]any{"status": map[string]any{}}
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	harness.InstallCRDs(t, crd)
	gauge := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Gauge"}}
		u.SetNamespace(namespace)
		u.SetName("a")
		return u
	}
	whole := gauge()
	whole.Object["spec"] = map[string]any{"kept": "k", "dropped": "d"}
	whole.Object["status"] = map[string]any{"kept": "k", "dropped": "d"}
	settings := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"data": map[string]any{"kept": "k", "dropped": "d"}}}
	settings.SetNamespace(namespace)
	settings.SetName("a")
	harness.Apply(t, whole, settings)

	c, config := runningCache(t, controllerruntime.Options{ReducedGet: controllerruntime.GetReduced,
		Keep: dynamicinformer.Keep{Paths: []string{".spec.kept", ".status.kept", ".data.kept"}}})
	plain, err := client.New(config,
		client.Options{Cache: &client.CacheOptions{Reader: c, Unstructured: true}})
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := controllerruntime.NewClient(config,
		client.Options{Cache: &client.CacheOptions{Reader: c, Unstructured: true}})
	if err != nil {
		t.Fatal(err)
	}
	live, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	content := func(o client.Object) string {
		t.Helper()
		if err := live.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(fields["spec"], fields["status"], fields["data"])
	}
	typed := &corev1.ConfigMap{}
	typed.Namespace, typed.Name = namespace, "a"
	for _, object := range []client.Object{gauge(), typed} {
		before := content(object.DeepCopyObject().(client.Object))
		if err := plain.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if !controllerruntime.IsReduced(object) {
			t.Fatalf("%v is not reduced", object)
		}
		err := plain.Update(t.Context(), object.DeepCopyObject().(client.Object))
		if !apierrors.IsInvalid(err) {
			t.Errorf("%T: update: %v", object, err)
		}
		if _, ok := object.(*unstructured.Unstructured); ok { // the server ignores annotations here
			err := guarded.Status().Update(t.Context(), object.DeepCopyObject().(client.Object))
			var reduced *controllerruntime.ReducedError
			if !errors.As(err, &reduced) {
				t.Errorf("update of the status: %v", err)
			}
		}
		patched := object.DeepCopyObject().(client.Object)
		patched.SetLabels(map[string]string{"patched": "yes"})
		if err := plain.Patch(t.Context(), patched, client.MergeFrom(object)); err != nil {
			t.Errorf("%T: patch: %v", object, err)
		}
		if after := content(object.DeepCopyObject().(client.Object)); after != before {
			t.Errorf("%T has changed from %s to %s", object, before, after)
		}
	}
}
