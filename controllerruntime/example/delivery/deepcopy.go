package delivery

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// In a larger project, controller-gen generates these methods.

// DeepCopyInto copies a Workload.
func (w *Workload) DeepCopyInto(out *Workload) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = copyConditions(w.Status.Conditions)
}

// DeepCopy copies a Workload.
func (w *Workload) DeepCopy() *Workload {
	out := &Workload{}
	w.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (w *Workload) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *WorkloadList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = copyItems(l.Items, (*Workload).DeepCopyInto)
	return &out
}

// DeepCopyInto copies an Environment.
func (e *Environment) DeepCopyInto(out *Environment) {
	*out = *e
	e.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopyObject implements runtime.Object.
func (e *Environment) DeepCopyObject() runtime.Object {
	out := &Environment{}
	e.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *EnvironmentList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = copyItems(l.Items, (*Environment).DeepCopyInto)
	return &out
}

// DeepCopyInto copies a Release.
func (r *Release) DeepCopyInto(out *Release) {
	*out = *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopyObject implements runtime.Object.
func (r *Release) DeepCopyObject() runtime.Object {
	out := &Release{}
	r.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *ReleaseList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = copyItems(l.Items, (*Release).DeepCopyInto)
	return &out
}

func copyItems[T any](items []T, copyInto func(item, out *T)) []T {
	if items == nil {
		return nil
	}
	out := make([]T, len(items))
	for i := range items {
		copyInto(&items[i], &out[i])
	}
	return out
}

func copyConditions(conditions []metav1.Condition) []metav1.Condition {
	return copyItems(conditions, func(c, out *metav1.Condition) { c.DeepCopyInto(out) })
}
