package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// resourceOf returns version v1 of the type that harness.NewCRD defines.
func resourceOf(definition *unstructured.Unstructured) schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
}

// withSecondVersion returns a copy of a definition that also serves v2.
func withSecondVersion(definition *unstructured.Unstructured) *unstructured.Unstructured {
	definition = definition.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	second := (&unstructured.Unstructured{Object: versions[0].(map[string]any)}).DeepCopy().Object
	second["name"], second["storage"] = "v2", false
	if err := unstructured.SetNestedSlice(definition.Object, append(versions, second), "spec",
		"versions"); err != nil {
		panic(err) // impossible with a definition of the harness
	}
	return definition
}

// uninstall deletes a definition without waiting. The server deletes its objects first.
func (s *fixture) uninstall(definition *unstructured.Unstructured) {
	s.Helper()
	if err := s.admin.Resource(crd.GVR).Delete(s.ctx, definition.GetName(),
		metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// reinstall creates a definition as soon as its name is free, without waiting for its establishment.
func (s *fixture) reinstall(definition *unstructured.Unstructured) {
	s.Helper()
	harness.Eventually(s, func(ctx context.Context) error {
		_, err := s.admin.Resource(crd.GVR).Create(ctx, definition, metav1.CreateOptions{})
		return err
	})
}

// create creates an object and retries until the server accepts it.
func (s *fixture) create(definition *unstructured.Unstructured, name string, finalizers ...string) {
	s.Helper()
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(resourceOf(definition).GroupVersion().WithKind(kind))
	object.SetName(name)
	object.SetFinalizers(finalizers)
	harness.Eventually(s, func(ctx context.Context) error {
		_, err := s.objects(definition).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
}

// createIn creates an object of a version in a namespace and retries until the server accepts it.
func (s *fixture) createIn(definition *unstructured.Unstructured, version, namespace, name string) {
	s.Helper()
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	gvr := resourceOf(definition).GroupResource().WithVersion(version)
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
	object.SetName(name)
	harness.Eventually(s, func(ctx context.Context) error {
		_, err := s.admin.Resource(gvr).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
}

// patchDefinition changes a definition with a JSON patch.
func (s *fixture) patchDefinition(definition *unstructured.Unstructured, patch []byte) {
	s.Helper()
	if _, err := s.admin.Resource(crd.GVR).Patch(s.ctx, definition.GetName(), types.JSONPatchType, patch,
		metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// touch updates an object.
func (s *fixture) touch(definition *unstructured.Unstructured, name string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, time.Now())
	if _, err := s.objects(definition).Patch(s.ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) delete(definition *unstructured.Unstructured, name string) {
	s.Helper()
	if err := s.objects(definition).Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// objects returns the client for the test's objects.
func (s *fixture) objects(definition *unstructured.Unstructured) dynamic.ResourceInterface {
	resource := s.admin.Resource(resourceOf(definition))
	if scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope"); scope == "Namespaced" {
		return resource.Namespace(metav1.NamespaceDefault)
	}
	return resource
}

func (s *fixture) setServed(definition *unstructured.Unstructured, version int, served bool) {
	s.Helper()
	patch, err := json.Marshal([]any{map[string]any{
		"op": "replace", "path": fmt.Sprintf("/spec/versions/%d/served", version), "value": served,
	}})
	if err != nil {
		s.Fatal(err)
	}
	s.patchDefinition(definition, patch)
}
