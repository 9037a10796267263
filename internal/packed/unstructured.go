package packed

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// Unstructured returns the decoded object, which is shared and must not be changed, and marks the object as
// read. Callers share one copy until the garbage collector frees it. If a compressed body is damaged,
// Unstructured reports the error to utilruntime.HandleError and returns an object with identity and labels.
func (o *Object) Unstructured() *unstructured.Unstructured {
	o.MarkRead()
	return o.PeekUnstructured()
}

// PeekUnstructured is Unstructured, but marks nothing as read. Handlers and index functions use it.
func (o *Object) PeekUnstructured() *unstructured.Unstructured {
	if original := o.info.unpackableObject; original != nil {
		return original
	}
	if u := o.Decoded(); u != nil {
		return u
	}
	u, err := o.Decode()
	if err != nil {
		utilruntime.HandleError(err)
		return o.skeleton()
	}
	return o.publish(u)
}

// Decode returns a decoded copy that the caller owns. It fails if a compressed body is damaged.
func (o *Object) Decode() (*unstructured.Unstructured, error) {
	if original := o.info.unpackableObject; original != nil {
		return Copy(original), nil
	}
	u := newCopy()
	err := o.PeekJSON(func(json []byte) (err error) {
		u.Object, err = o.info.decoder.Decode(json)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", o.Key(), err)
	}
	return u, nil
}

// skeleton returns an object with the identity and labels only.
func (o *Object) skeleton() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(o.info.apiVersion)
	u.SetKind(o.info.kind)
	u.SetName(o.GetName())
	u.SetNamespace(o.GetNamespace())
	u.SetUID(o.GetUID())
	u.SetResourceVersion(o.GetResourceVersion())
	if !o.hasComplexLabels() {
		u.SetLabels(o.GetLabels())
	}
	return u
}

// Copy returns a deep copy of an object. Its values can have any type: see jsontext.CopyValue.
func Copy(u *unstructured.Unstructured) *unstructured.Unstructured {
	content, _ := jsontext.CopyValue(u.Object).(map[string]any)
	return &unstructured.Unstructured{Object: content}
}

// PeekPair returns the results of PeekUnstructured for an object before and after an update. If neither is in
// memory, it decodes them together: maps, lists and strings with the same text are decoded once and shared. A
// copy that is already in memory is returned unchanged. New copies share no values with it, so that they are
// correct even if a handler has changed that copy by mistake.
func PeekPair(before, after *Object) (previous, current *unstructured.Unstructured) {
	if !before.canDecodeWith(after) {
		return before.PeekUnstructured(), after.PeekUnstructured()
	}
	previous, current = newCopy(), newCopy()
	err := before.PeekJSON(func(old []byte) error {
		return after.PeekJSON(func(new []byte) (err error) {
			current.Object, previous.Object, err = after.info.decoder.DecodePair(new, old)
			return err
		})
	})
	if err != nil {
		return before.PeekUnstructured(), after.PeekUnstructured()
	}
	return before.publish(previous), after.publish(current)
}

// canDecodeWith reports whether both objects need decoding and can be decoded together.
func (o *Object) canDecodeWith(other *Object) bool {
	return o != other && o.info.unpackableObject == nil && other.info.unpackableObject == nil &&
		o.info.decoder == other.info.decoder && o.Decoded() == nil && other.Decoded() == nil
}

// List is a list of packed objects. client-go's pager, reflector and meta helpers accept it.
type List struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*Object
}

var (
	_ runtime.Object       = (*List)(nil)
	_ metav1.ListInterface = (*List)(nil)
)

// GetObjectKind implements runtime.Object.
func (l *List) GetObjectKind() schema.ObjectKind { return &l.TypeMeta }

// DeepCopyObject implements runtime.Object. The copy shares the objects, which are immutable.
func (l *List) DeepCopyObject() runtime.Object {
	copied := &List{TypeMeta: l.TypeMeta, Items: append([]*Object(nil), l.Items...)}
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	return copied
}
