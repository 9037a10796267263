package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// NewCRD returns the definition of a namespaced kind with the version v1 and a schema that accepts any field.
// The resource is the kind in lower case plus "s". Tests can change the definition.
func NewCRD(group, kind string) *unstructured.Unstructured {
	singular := strings.ToLower(kind)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": singular + "s." + group},
		"spec": map[string]any{
			"group": group,
			"scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": singular + "s",
				"singular": singular},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

// InstallCRDs applies definitions and waits until they can be listed in all served versions, and are in
// discovery. At the end of the test it deletes them with their objects and waits for the deletion.
func InstallCRDs(t testing.TB, crds ...*unstructured.Unstructured) {
	t.Helper()
	c := newClients(t)
	for _, crd := range crds {
		if crd.GetKind() != "CustomResourceDefinition" {
			t.Fatalf("%s %s is not a CustomResourceDefinition", crd.GetKind(), crd.GetName())
		}
		t.Cleanup(func() { removeCRD(t, c, crd.GetName()) })
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		must(t, c.apply(ctx, crdResource, crd))
	}
	for _, crd := range crds {
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		if err := c.awaitServed(ctx, crd); err != nil {
			t.Fatalf("waiting until %s is served: %v", crd.GetName(), err)
		}
	}
}

// removeCRD deletes a definition and waits until the definition and its resources are gone.
func removeCRD(t testing.TB, c *clients, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	crd, err := c.dynamic.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = errors.Join(c.removeAllFinalizers(ctx, crd),
			deleteAndAwait(ctx, c.dynamic.Resource(crdResource), name))
	}
	if err = ignoreNotFound(err); err != nil {
		t.Errorf("removing %s: %v", name, err)
		return
	}
	if crd == nil {
		return
	}
	for _, gvr := range servedResources(crd) {
		err := eventually(ctx, func(context.Context) error {
			if discovered, err := c.isDiscovered(gvr); err != nil || discovered {
				return fmt.Errorf("%s is still in discovery (%v)", gvr, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("removing %s: %v", name, err)
		}
	}
}

// awaitServed waits until the types of a definition can be listed and are in discovery. A client can depend
// on either.
func (c *clients) awaitServed(ctx context.Context, crd *unstructured.Unstructured) error {
	for _, gvr := range servedResources(crd) {
		err := eventually(ctx, func(ctx context.Context) error {
			if _, err := c.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return err
			}
			if discovered, err := c.isDiscovered(gvr); err != nil || !discovered {
				return fmt.Errorf("%s is not in discovery (%v)", gvr, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// servedResources returns the resources that a definition adds to the API.
func servedResources(crd *unstructured.Unstructured) []schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var served []schema.GroupVersionResource
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] == true {
			served = append(served, schema.GroupVersionResource{Group: group, Version: name,
				Resource: plural})
		}
	}
	return served
}

// isDiscovered reports whether discovery has gvr. It returns an error if aggregated discovery and the
// document of the group version disagree.
func (c *clients) isDiscovered(gvr schema.GroupVersionResource) (bool, error) {
	aggregated := false
	_, lists, _, err := c.discovery.GroupsAndMaybeResources()
	if err != nil {
		return false, err
	}
	if list := lists[gvr.GroupVersion()]; list != nil {
		aggregated = hasResource(list, gvr.Resource)
	}
	list, err := c.discovery.ServerResourcesForGroupVersion(gvr.GroupVersion().String())
	if err = ignoreNotFound(err); err != nil {
		return false, err
	}
	if inLegacy := list != nil && hasResource(list, gvr.Resource); inLegacy != aggregated {
		return false, fmt.Errorf("aggregated discovery has the type: %t; discovery of the group version has it: %t",
			aggregated, inLegacy)
	}
	return aggregated, nil
}

func hasResource(list *metav1.APIResourceList, name string) bool {
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
}

type clients struct {
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
}

func newClients(t testing.TB) *clients {
	t.Helper()
	config := Config(t)
	d, err := dynamic.NewForConfig(config)
	must(t, err)
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	return &clients{dynamic: d, discovery: disco}
}

// nameCount makes names unique among tests and among the runs of -count.
var nameCount atomic.Int64

// Group returns an API group for one test.
func Group(t testing.TB) string {
	t.Helper()
	return uniqueName(t.Name()) + ".crdcache.test"
}

// uniqueName returns a unique DNS label that contains the name of the test.
func uniqueName(test string) string {
	const longest = 40
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, strings.TrimPrefix(test, "Test"))
	label = strings.Trim(label[:min(len(label), longest)], "-")
	return fmt.Sprintf("%s-%d", strings.TrimLeft("t-"+label, "-"), nameCount.Add(1))
}
