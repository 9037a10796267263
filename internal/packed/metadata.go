package packed

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// MetadataReader is an Object that decompresses at most once for all getters. It then holds a copy of the
// metadata, and should not outlive its event.
type MetadataReader struct {
	*Object
	decompressed atomic.Pointer[[]byte] // JSON of the metadata
}

// MetadataReader returns a reader of the object's metadata. It is safe for concurrent use.
func (o *Object) MetadataReader() *MetadataReader { return &MetadataReader{Object: o} }

// read calls f with the JSON of the metadata, nil if there is none.
func (m *MetadataReader) read(f func(metadata []byte)) {
	if cached := m.decompressed.Load(); cached != nil {
		f(*cached)
		return
	}
	err := m.PeekJSON(func(json []byte) error {
		metadata := metadataOf(json)
		if m.Compressed() {
			metadata = bytes.Clone(metadata)
			m.decompressed.Store(&metadata)
		}
		f(metadata)
		return nil
	})
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("read metadata of %s: %w", m.Key(), err))
	}
}

// metadataOf returns the JSON of metadata, which occurs at most once in a packed object.
func metadataOf(json []byte) []byte {
	for member := range jsontext.Members(json) {
		if string(member.Key) == "metadata" {
			return member.Value
		}
	}
	return nil
}

// metadataField calls a getter of unstructured objects on an object that has only one field of the metadata.
// The getter defines the result for unexpected values, and must not retain the object.
func metadataField[T any](m *MetadataReader, name string, get func(*unstructured.Unstructured) T) (value T) {
	if original := m.info.unpackableObject; original != nil {
		return get(original)
	}
	m.read(func(metadata []byte) {
		var text []byte
		for member := range jsontext.Members(metadata) {
			if string(member.Key) == name {
				text = member.Value // the last of duplicate keys wins
			}
		}
		if text == nil {
			return
		}
		decoded, err := m.info.decoder.DecodeValue(text)
		if err != nil {
			return // impossible: the Packer has checked the JSON
		}
		field := singleFields.Get().(*singleField)
		field.metadata[name] = decoded
		value = get(&field.object)
		delete(field.metadata, name)
		singleFields.Put(field)
	})
	return value
}

// singleField is an object with room for one field of its metadata.
type singleField struct {
	object   unstructured.Unstructured
	metadata map[string]any
}

var singleFields = sync.Pool{New: func() any {
	metadata := map[string]any{}
	return &singleField{unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}, metadata}
}}

func (m *MetadataReader) GetAnnotations() map[string]string {
	return metadataField(m, "annotations", (*unstructured.Unstructured).GetAnnotations)
}

func (m *MetadataReader) GetCreationTimestamp() metav1.Time {
	return metadataField(m, "creationTimestamp", (*unstructured.Unstructured).GetCreationTimestamp)
}

func (m *MetadataReader) GetDeletionTimestamp() *metav1.Time {
	return metadataField(m, "deletionTimestamp", (*unstructured.Unstructured).GetDeletionTimestamp)
}

func (m *MetadataReader) GetDeletionGracePeriodSeconds() *int64 {
	return metadataField(m, "deletionGracePeriodSeconds", (*unstructured.Unstructured).GetDeletionGracePeriodSeconds)
}

func (m *MetadataReader) GetFinalizers() []string {
	return metadataField(m, "finalizers", (*unstructured.Unstructured).GetFinalizers)
}

func (m *MetadataReader) GetGenerateName() string {
	return metadataField(m, "generateName", (*unstructured.Unstructured).GetGenerateName)
}

func (m *MetadataReader) GetGeneration() int64 {
	return metadataField(m, "generation", (*unstructured.Unstructured).GetGeneration)
}

func (m *MetadataReader) GetLabels() map[string]string {
	if !m.hasComplexLabels() {
		return m.Object.GetLabels()
	}
	return metadataField(m, "labels", (*unstructured.Unstructured).GetLabels)
}

func (m *MetadataReader) GetManagedFields() []metav1.ManagedFieldsEntry {
	return metadataField(m, "managedFields", (*unstructured.Unstructured).GetManagedFields)
}

func (m *MetadataReader) GetOwnerReferences() []metav1.OwnerReference {
	return metadataField(m, "ownerReferences", (*unstructured.Unstructured).GetOwnerReferences)
}

func (m *MetadataReader) GetSelfLink() string {
	return metadataField(m, "selfLink", (*unstructured.Unstructured).GetSelfLink)
}
