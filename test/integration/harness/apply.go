package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

var applyOptions = metav1.ApplyOptions{FieldManager: "integration", Force: true}
var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Apply applies objects and their status, namespaces first. At the end of the test it removes them and their
// finalizers. The API server must already serve the types.
func Apply(t testing.TB, objects ...*unstructured.Unstructured) {
	t.Helper()
	c := newClients(t)
	groups, err := restmapper.GetAPIGroupResources(c.discovery)
	must(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	// Namespaces first.
	ordered := slices.SortedStableFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return strings.Compare(fmt.Sprint(!isNamespace(a)), fmt.Sprint(!isNamespace(b)))
	})
	for _, object := range ordered {
		gvk := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		must(t, err)
		t.Cleanup(func() { c.cleanUp(t, mapping.Resource, object) })
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		must(t, c.apply(ctx, mapping.Resource, object))
	}
}

func isNamespace(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Namespace" && o.GetAPIVersion() == "v1"
}

// Namespace creates a namespace for the test and returns its name. At the end of the test it deletes the
// namespace, but not the objects in it: they stay hidden until their type is deleted.
func Namespace(t testing.TB) string {
	t.Helper()
	name := uniqueName(t.Name())
	Apply(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}})
	return name
}

func (c *clients) apply(ctx context.Context, gvr schema.GroupVersionResource,
	object *unstructured.Unstructured) error {
	resource := c.resource(gvr, object.GetNamespace())
	if _, err := resource.Apply(ctx, object.GetName(), object, applyOptions); err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if _, ok := object.Object["status"]; !ok || gvr == crdResource {
		return nil
	}
	// A type without the subresource answers "not found". Its status was applied above.
	if _, err := resource.ApplyStatus(ctx, object.GetName(), object,
		applyOptions); ignoreNotFound(err) != nil {
		return fmt.Errorf("applying the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func (c *clients) resource(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.dynamic.Resource(gvr)
	}
	return c.dynamic.Resource(gvr).Namespace(namespace)
}

// cleanUp removes an applied object.
func (c *clients) cleanUp(t testing.TB, gvr schema.GroupVersionResource, object *unstructured.Unstructured) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	resource := c.resource(gvr, object.GetNamespace())
	err := removeFinalizers(ctx, resource, object.GetName())
	if err == nil && isNamespace(object) {
		err = c.removeNamespace(ctx, object.GetName())
	} else if err == nil {
		err = deleteAndAwait(ctx, resource, object.GetName())
	}
	if ignoreNotFound(err) != nil {
		t.Errorf("removing %s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

// removeNamespace deletes a namespace and finalizes it, because no namespace controller runs.
func (c *clients) removeNamespace(ctx context.Context, name string) error {
	namespaces := c.dynamic.Resource(namespaceResource)
	if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	ns, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(ns.Object, "spec", "finalizers")
	if _, err := namespaces.Update(ctx, ns, metav1.UpdateOptions{}, "finalize"); err != nil {
		return err
	}
	return awaitDeleted(ctx, namespaces, name)
}

// deleteAndAwait deletes an object and waits for its deletion. No garbage collector orphans the pods of Jobs.
func deleteAndAwait(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	inBackground := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	if err := resource.Delete(ctx, name, inBackground); err != nil {
		return err
	}
	return awaitDeleted(ctx, resource, name)
}

// awaitDeleted waits until no object of this name exists.
func awaitDeleted(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	return eventually(ctx, func(ctx context.Context) error {
		_, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("%s still exists", name)
		}
		return ignoreNotFound(err)
	})
}

// removeFinalizers removes the finalizers of an object, because their controllers do not run.
func removeFinalizers(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	_, err := resource.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// removeAllFinalizers removes the finalizers of all objects of a definition, so that the definition can be
// deleted.
func (c *clients) removeAllFinalizers(ctx context.Context, crd *unstructured.Unstructured) error {
	served := servedResources(crd)
	if len(served) == 0 {
		return nil
	}
	list, err := c.dynamic.Resource(served[0]).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	return list.EachListItem(func(o runtime.Object) error {
		accessor, err := meta.Accessor(o)
		if err != nil || len(accessor.GetFinalizers()) == 0 {
			return err
		}
		err = removeFinalizers(ctx, c.resource(served[0], accessor.GetNamespace()), accessor.GetName())
		if isMissingNamespace(err) {
			err = c.removeHiddenFinalizers(ctx, served[0], accessor)
		}
		return ignoreNotFound(err)
	})
}

// removeHiddenFinalizers removes the finalizers of an object in a deleted namespace. Kubernetes 1.30 refuses
// this change, so the namespace is created again for it.
func (c *clients) removeHiddenFinalizers(ctx context.Context, gvr schema.GroupVersionResource,
	object metav1.Object) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": object.GetNamespace()},
	}}
	if err := c.apply(ctx, namespaceResource, namespace); err != nil {
		return err
	}
	return errors.Join(removeFinalizers(ctx, c.resource(gvr, object.GetNamespace()), object.GetName()),
		c.removeNamespace(ctx, object.GetNamespace()))
}

// isMissingNamespace reports whether an error says that the namespace, not the object, does not exist.
func isMissingNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == namespaceResource.Resource
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
