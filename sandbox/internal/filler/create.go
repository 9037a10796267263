package filler

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Field managers of a real cluster.
const (
	specManager   = "helm"
	statusManager = "controller"
)

// buildObject combines identity and content.
func buildObject(id identity, c content) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for name, value := range c.body {
		object.Object[name] = value
	}
	metadata := map[string]any{"name": id.name, "namespace": id.namespace}
	if len(c.labels) > 0 {
		metadata["labels"] = c.labels
	}
	if len(c.annotations) > 0 {
		metadata["annotations"] = c.annotations
	}
	object.Object["metadata"] = metadata
	object.SetAPIVersion(certificateResource.GroupVersion().String())
	object.SetKind(certificateKind)
	return object
}

// createThroughAPI creates an object and its status with two requests, like a tool and a controller.
func createThroughAPI(ctx context.Context, dyn dynamic.Interface, object *unstructured.Unstructured) error {
	client := dyn.Resource(certificateResource).Namespace(object.GetNamespace())
	created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: specManager})
	if err != nil {
		return fmt.Errorf("create %s: %w", object.GetName(), err)
	}
	status, hasStatus := object.Object["status"]
	if !hasStatus {
		return nil
	}
	created.Object["status"] = status
	if _, err := client.UpdateStatus(ctx, created,
		metav1.UpdateOptions{FieldManager: statusManager}); err != nil {
		return fmt.Errorf("update status of %s: %w", object.GetName(), err)
	}
	return nil
}
