package packed

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	_ runtime.Object = (*Object)(nil)
	_ metav1.Object  = (*Object)(nil)
)

func (o *Object) GetObjectKind() schema.ObjectKind { return o }

// DeepCopyObject returns the object itself, which is immutable.
func (o *Object) DeepCopyObject() runtime.Object { return o }

func (o *Object) GroupVersionKind() schema.GroupVersionKind {
	if original := o.info.unpackableObject; original != nil {
		return original.GroupVersionKind()
	}
	return o.info.gvk
}

func (o *Object) GetAPIVersion() string { return o.info.apiVersion }
func (o *Object) GetKind() string       { return o.info.kind }

// Strings of the following getters do not share the object's memory: keeping them does not keep it.

func (o *Object) GetName() string            { return strings.Clone(o.Name()) }
func (o *Object) GetNamespace() string       { return strings.Clone(o.Namespace()) }
func (o *Object) GetUID() types.UID          { return types.UID(strings.Clone(string(o.UID()))) }
func (o *Object) GetResourceVersion() string { return strings.Clone(o.Version()) }

// The remaining getters parse only their field of the JSON. Several getters of a compressed object should use
// one MetadataReader, because each of these decompresses it.

func (o *Object) GetAnnotations() map[string]string { return o.MetadataReader().GetAnnotations() }
func (o *Object) GetCreationTimestamp() metav1.Time { return o.MetadataReader().GetCreationTimestamp() }
func (o *Object) GetDeletionTimestamp() *metav1.Time {
	return o.MetadataReader().GetDeletionTimestamp()
}
func (o *Object) GetFinalizers() []string { return o.MetadataReader().GetFinalizers() }
func (o *Object) GetGenerateName() string { return o.MetadataReader().GetGenerateName() }
func (o *Object) GetGeneration() int64    { return o.MetadataReader().GetGeneration() }
func (o *Object) GetSelfLink() string     { return o.MetadataReader().GetSelfLink() }
func (o *Object) GetDeletionGracePeriodSeconds() *int64 {
	return o.MetadataReader().GetDeletionGracePeriodSeconds()
}

func (o *Object) GetManagedFields() []metav1.ManagedFieldsEntry {
	return o.MetadataReader().GetManagedFields()
}

func (o *Object) GetOwnerReferences() []metav1.OwnerReference {
	return o.MetadataReader().GetOwnerReferences()
}

// panicImmutable panics in setters, because a caller is about to change a shared object.
func (o *Object) panicImmutable() { panic("packed: a packed object cannot be changed: " + o.Key()) }

func (o *Object) SetGroupVersionKind(schema.GroupVersionKind)  { o.panicImmutable() }
func (o *Object) SetName(string)                               { o.panicImmutable() }
func (o *Object) SetGenerateName(string)                       { o.panicImmutable() }
func (o *Object) SetNamespace(string)                          { o.panicImmutable() }
func (o *Object) SetUID(types.UID)                             { o.panicImmutable() }
func (o *Object) SetResourceVersion(string)                    { o.panicImmutable() }
func (o *Object) SetGeneration(int64)                          { o.panicImmutable() }
func (o *Object) SetSelfLink(string)                           { o.panicImmutable() }
func (o *Object) SetCreationTimestamp(metav1.Time)             { o.panicImmutable() }
func (o *Object) SetDeletionTimestamp(*metav1.Time)            { o.panicImmutable() }
func (o *Object) SetDeletionGracePeriodSeconds(*int64)         { o.panicImmutable() }
func (o *Object) SetLabels(map[string]string)                  { o.panicImmutable() }
func (o *Object) SetAnnotations(map[string]string)             { o.panicImmutable() }
func (o *Object) SetFinalizers([]string)                       { o.panicImmutable() }
func (o *Object) SetOwnerReferences([]metav1.OwnerReference)   { o.panicImmutable() }
func (o *Object) SetManagedFields([]metav1.ManagedFieldsEntry) { o.panicImmutable() }
