package filler

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// target is the custom resource to write, in its storage version.
type target struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	hasStatus  bool
	schema     map[string]any // openAPIV3Schema
}

// findTarget finds a CRD by name, "plural.group".
func findTarget(ctx context.Context, client dynamic.Interface, name string) (target, error) {
	crds := client.Resource(crdResource)
	crd, err := crds.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return target{}, unknownType(ctx, crds, name)
	}
	if err != nil {
		return target{}, err
	}
	spec, _, _ := unstructured.NestedMap(crd.Object, "spec")
	versions, _, _ := unstructured.NestedSlice(spec, "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["storage"] != true {
			continue
		}
		if version["served"] != true {
			return target{}, fmt.Errorf("%s: the storage version %v is not served", name, version["name"])
		}
		return newTarget(spec, version), nil
	}
	return target{}, fmt.Errorf("%s: the CRD has no storage version", name)
}

func newTarget(spec, version map[string]any) target {
	group, _, _ := unstructured.NestedString(spec, "group")
	plural, _, _ := unstructured.NestedString(spec, "names", "plural")
	kind, _, _ := unstructured.NestedString(spec, "names", "kind")
	scope, _, _ := unstructured.NestedString(spec, "scope")
	name, _, _ := unstructured.NestedString(version, "name")
	_, hasStatus, _ := unstructured.NestedMap(version, "subresources", "status")
	openAPI, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	return target{
		gvr:        schema.GroupVersionResource{Group: group, Version: name, Resource: plural},
		kind:       kind,
		namespaced: scope == "Namespaced",
		hasStatus:  hasStatus,
		schema:     openAPI,
	}
}

// unknownType returns an error that lists the existing types.
func unknownType(ctx context.Context, crds dynamic.NamespaceableResourceInterface, name string) error {
	list, err := crds.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("there is no custom resource %q: the server has no CRDs, load some first", name)
	}
	var names []string
	for _, crd := range list.Items {
		names = append(names, crd.GetName())
	}
	return fmt.Errorf("there is no custom resource %q; the server has: %s", name, strings.Join(names, ", "))
}

// client returns the resource's client for a namespace.
func (t target) client(dyn dynamic.Interface, namespace string) dynamic.ResourceInterface {
	if t.namespaced {
		return dyn.Resource(t.gvr).Namespace(namespace)
	}
	return dyn.Resource(t.gvr)
}

// etcdKey returns the key of an object in etcd.
func (t target) etcdKey(namespace, name string) string {
	parts := []string{"/registry", t.gvr.Group, t.gvr.Resource}
	if t.namespaced {
		parts = append(parts, namespace)
	}
	return strings.Join(append(parts, name), "/")
}
