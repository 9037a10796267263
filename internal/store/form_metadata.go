package store

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

const (
	metadataVersion = "meta.k8s.io/v1"
	metadataKind    = "PartialObjectMetadata"
)

// NewMetadata returns a Form that keeps the metadata of objects, packed, as a server sends it that is asked for no
// more. Whole objects are cut down.
func NewMetadata(pruner *packed.Pruner) *Packed {
	f := NewPacked(pruner, nil)
	f.metadataOnly = true
	return f
}

// metadataOf returns the metadata of an object that arrives.
func metadataOf(object any) any {
	switch object := object.(type) {
	case *packed.Object:
		if object.GetKind() != metadataKind {
			return metadataOf(object.Unstructured())
		}
	case *unstructured.Unstructured:
		if object != nil && object.GetKind() != metadataKind {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": metadataVersion, "kind": metadataKind, "metadata": object.Object["metadata"],
			}}
		}
	}
	return object
}
