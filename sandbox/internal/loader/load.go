package loader

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	fieldManager = "crdcache-sandbox"
	// parallel limits the objects that are applied concurrently.
	parallel = 8
)

// Result counts the applied objects.
type Result struct {
	CRDs, Namespaces, Objects int
}

// loader has the clients of one Load.
type loader struct {
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface
}

// Load applies the documents to the server of config. A phase does not start if an earlier one failed; the
// error joins all failures of a phase. The order within a phase is undefined.
func Load(ctx context.Context, config *rest.Config, docs []Document) (Result, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // no client-side limit
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return Result{}, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Result{}, err
	}
	l := &loader{dynamic: client, discovery: disco}

	crds, namespaces, others := phases(docs)
	if err := l.loadCRDs(ctx, crds); err != nil {
		return Result{}, err
	}
	if err := l.applyAll(ctx, namespaces); err != nil {
		return Result{}, err
	}
	if err := l.applyAll(ctx, others); err != nil {
		return Result{}, err
	}
	return Result{CRDs: len(crds), Namespaces: len(namespaces), Objects: len(others)}, nil
}

func phases(docs []Document) (crds, namespaces, others []Document) {
	for _, doc := range docs {
		switch doc.Object.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
			crds = append(crds, doc)
		case schema.GroupKind{Kind: "Namespace"}:
			namespaces = append(namespaces, doc)
		default:
			others = append(others, doc)
		}
	}
	return crds, namespaces, others
}

func (l *loader) loadCRDs(ctx context.Context, docs []Document) error {
	if err := l.applyAll(ctx, docs); err != nil {
		return err
	}
	return l.awaitServed(ctx, docs)
}

// applyAll applies the documents of one phase concurrently.
func (l *loader) applyAll(ctx context.Context, docs []Document) error {
	if len(docs) == 0 {
		return nil
	}
	resources, err := l.resources()
	if err != nil {
		return err
	}
	errs := make([]error, len(docs))
	limit := make(chan struct{}, parallel)
	var running sync.WaitGroup
	for i, doc := range docs {
		limit <- struct{}{}
		running.Go(func() { // ends with its request
			defer func() { <-limit }()
			if err := l.apply(ctx, resources, doc); err != nil {
				errs[i] = fmt.Errorf("%s: %w", doc, err)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (l *loader) apply(ctx context.Context, resources resourceIndex, doc Document) error {
	gvk := doc.Object.GroupVersionKind()
	resource, ok := resources[gvk]
	if !ok {
		return fmt.Errorf("the server has no resource for kind %s in %s (is its CRD loaded?)", gvk.Kind,
			gvk.GroupVersion())
	}
	object := withoutServerFields(doc.Object)
	var client dynamic.ResourceInterface = l.dynamic.Resource(resource.gvr)
	if resource.namespaced {
		if object.GetNamespace() == "" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		client = l.dynamic.Resource(resource.gvr).Namespace(object.GetNamespace())
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := client.Apply(ctx, object.GetName(), object, options); err != nil {
		return err
	}
	if _, hasStatus := object.Object["status"]; !hasStatus || !resource.hasStatus {
		return nil
	}
	if _, err := client.ApplyStatus(ctx, object.GetName(), object, options); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	return nil
}

// withoutServerFields returns a copy of an object without the fields that only the server may set.
func withoutServerFields(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	for _, field := range []string{
		"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink",
	} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return object
}
