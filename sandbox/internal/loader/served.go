package loader

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const servedTimeout = 60 * time.Second

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// awaitServed waits until every CRD is established, listable in all served versions, and in discovery. These
// become true one after the other, and a client may depend on any of them.
func (l *loader) awaitServed(ctx context.Context, docs []Document) error {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	for _, doc := range docs {
		if err := l.poll(ctx, func() error {
			return l.awaitEstablished(ctx,
				doc.Object.GetName())
		}); err != nil {
			return fmt.Errorf("%s: %w", doc, err)
		}
		for gvk, gvr := range servedResources(doc.Object) {
			err := l.poll(ctx, func() error {
				_, err := l.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
				return err
			})
			if err == nil {
				err = l.poll(ctx, func() error { return l.discovered(gvk) })
			}
			if err != nil {
				return fmt.Errorf("%s: %w", doc, err)
			}
		}
	}
	return nil
}

// poll calls check until it succeeds or ctx ends.
func (l *loader) poll(ctx context.Context, check func() error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("not served: %w", err)
		}
	}
}

func (l *loader) awaitEstablished(ctx context.Context, name string) error {
	crd, err := l.dynamic.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return nil
		}
		if condition["type"] == "NamesAccepted" && condition["status"] == "False" {
			return fmt.Errorf("names not accepted: %v", condition["message"])
		}
	}
	return fmt.Errorf("CRD %s is not established", name)
}

func (l *loader) discovered(gvk schema.GroupVersionKind) error {
	resources, err := l.resources()
	if err != nil {
		return err
	}
	if _, ok := resources[gvk]; !ok {
		return fmt.Errorf("%s is not in discovery", gvk)
	}
	return nil
}

// servedResources returns the resources that a CRD adds to the API.
func servedResources(crd *unstructured.Unstructured) map[schema.GroupVersionKind]schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	served := map[schema.GroupVersionKind]schema.GroupVersionResource{}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] == true {
			gv := schema.GroupVersion{Group: group, Version: name}
			served[gv.WithKind(kind)] = gv.WithResource(plural)
		}
	}
	return served
}
