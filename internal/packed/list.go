package packed

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
