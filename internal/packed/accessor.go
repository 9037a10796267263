package packed

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	_ runtime.Object    = (*Object)(nil)
	_ metav1.Object     = (*Object)(nil)
	_ schema.ObjectKind = (*Object)(nil)
)

// GetObjectKind implements runtime.Object.
func (o *Object) GetObjectKind() schema.ObjectKind { return o }

// DeepCopyObject implements runtime.Object. It returns the object itself, which is immutable.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// GroupVersionKind implements schema.ObjectKind.
func (o *Object) GroupVersionKind() schema.GroupVersionKind {
	if original := o.info.original; original != nil {
		return original.GroupVersionKind()
	}
	return o.info.gvk
}

// GetAPIVersion returns apiVersion.
func (o *Object) GetAPIVersion() string { return o.info.apiVersion }

// GetKind returns kind.
func (o *Object) GetKind() string { return o.info.kind }

// Strings returned by the following getters do not share the object's memory: a handler that keeps them does
// not keep the object.

// GetName implements metav1.Object.
func (o *Object) GetName() string { return strings.Clone(o.Name()) }

// GetNamespace implements metav1.Object.
func (o *Object) GetNamespace() string { return strings.Clone(o.Namespace()) }

// GetUID implements metav1.Object.
func (o *Object) GetUID() types.UID { return types.UID(strings.Clone(string(o.UID()))) }

// GetResourceVersion implements metav1.Object.
func (o *Object) GetResourceVersion() string { return strings.Clone(o.Version()) }

// The remaining getters decode the object unless a decoded copy is in memory.

// GetAnnotations implements metav1.Object.
func (o *Object) GetAnnotations() map[string]string { return o.Unstructured().GetAnnotations() }

// GetCreationTimestamp implements metav1.Object.
func (o *Object) GetCreationTimestamp() metav1.Time { return o.Unstructured().GetCreationTimestamp() }

// GetDeletionTimestamp implements metav1.Object.
func (o *Object) GetDeletionTimestamp() *metav1.Time { return o.Unstructured().GetDeletionTimestamp() }

// GetDeletionGracePeriodSeconds implements metav1.Object.
func (o *Object) GetDeletionGracePeriodSeconds() *int64 {
	return o.Unstructured().GetDeletionGracePeriodSeconds()
}

// GetFinalizers implements metav1.Object.
func (o *Object) GetFinalizers() []string { return o.Unstructured().GetFinalizers() }

// GetGenerateName implements metav1.Object.
func (o *Object) GetGenerateName() string { return o.Unstructured().GetGenerateName() }

// GetGeneration implements metav1.Object.
func (o *Object) GetGeneration() int64 { return o.Unstructured().GetGeneration() }

// GetManagedFields implements metav1.Object.
func (o *Object) GetManagedFields() []metav1.ManagedFieldsEntry {
	return o.Unstructured().GetManagedFields()
}

// GetOwnerReferences implements metav1.Object.
func (o *Object) GetOwnerReferences() []metav1.OwnerReference {
	return o.Unstructured().GetOwnerReferences()
}

// GetSelfLink implements metav1.Object.
func (o *Object) GetSelfLink() string { return o.Unstructured().GetSelfLink() }

// refuse panics in setters, because a caller is about to change a shared object.
func (o *Object) refuse() { panic("packed: a packed object cannot be changed: " + o.Key()) }

// SetGroupVersionKind panics.
func (o *Object) SetGroupVersionKind(schema.GroupVersionKind) { o.refuse() }

// SetName panics.
func (o *Object) SetName(string) { o.refuse() }

// SetGenerateName panics.
func (o *Object) SetGenerateName(string) { o.refuse() }

// SetNamespace panics.
func (o *Object) SetNamespace(string) { o.refuse() }

// SetUID panics.
func (o *Object) SetUID(types.UID) { o.refuse() }

// SetResourceVersion panics.
func (o *Object) SetResourceVersion(string) { o.refuse() }

// SetGeneration panics.
func (o *Object) SetGeneration(int64) { o.refuse() }

// SetSelfLink panics.
func (o *Object) SetSelfLink(string) { o.refuse() }

// SetCreationTimestamp panics.
func (o *Object) SetCreationTimestamp(metav1.Time) { o.refuse() }

// SetDeletionTimestamp panics.
func (o *Object) SetDeletionTimestamp(*metav1.Time) { o.refuse() }

// SetDeletionGracePeriodSeconds panics.
func (o *Object) SetDeletionGracePeriodSeconds(*int64) { o.refuse() }

// SetLabels panics.
func (o *Object) SetLabels(map[string]string) { o.refuse() }

// SetAnnotations panics.
func (o *Object) SetAnnotations(map[string]string) { o.refuse() }

// SetFinalizers panics.
func (o *Object) SetFinalizers([]string) { o.refuse() }

// SetOwnerReferences panics.
func (o *Object) SetOwnerReferences([]metav1.OwnerReference) { o.refuse() }

// SetManagedFields panics.
func (o *Object) SetManagedFields([]metav1.ManagedFieldsEntry) { o.refuse() }
