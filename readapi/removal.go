package readapi

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// remove returns the object as it is when it is deleted, and whether nothing is left of it.
func (m mutation) remove(old *unstructured.Unstructured,
	options *metav1.DeleteOptions) (u *unstructured.Unstructured, gone bool, err error) {
	if err := m.checkPreconditions(old, options.Preconditions); err != nil {
		return nil, false, err
	}
	u = old.DeepCopy()
	switch m.t.typ.GroupResource() {
	case definitions:
		return u, markDefinition(u, options, m.now), nil
	case namespaces:
		if slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic},
			u.GetName()) && holdsContent(u) {
			return nil, false, apierrors.NewForbidden(namespaces, u.GetName(),
				fmt.Errorf("this namespace may not be deleted"))
		}
		if holdsContent(u) {
			markNamespace(u, m.now)
			return u, false, nil
		}
	}
	return u, markDeleted(u, options, m.now), nil
}

// checkPreconditions refuses the deletion of another state than that which is meant.
func (m mutation) checkPreconditions(old *unstructured.Unstructured, p *metav1.Preconditions) error {
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Group: m.t.typ.Group, Resource: m.t.typ.Names.Kind},
			old.GetName(), fmt.Errorf(format, args...))
	}
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != old.GetUID():
		return conflict("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, old.GetUID())
	case p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion():
		return conflict("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, old.GetResourceVersion())
	}
	return nil
}

// markDeleted makes an object one that is being deleted, and reports whether nothing keeps it.
func markDeleted(u *unstructured.Unstructured, options *metav1.DeleteOptions, now time.Time) (gone bool) {
	u.SetFinalizers(collectorFinalizers(u.GetFinalizers(), options))
	if len(u.GetFinalizers()) == 0 {
		return true
	}
	if u.GetDeletionTimestamp() == nil && u.GetGeneration() > 0 {
		u.SetGeneration(u.GetGeneration() + 1)
	}
	setDeletionTimestamp(u, now)
	none := int64(0)
	u.SetDeletionGracePeriodSeconds(&none)
	return false
}

func setDeletionTimestamp(u *unstructured.Unstructured, now time.Time) {
	if deleted := u.GetDeletionTimestamp(); deleted == nil || deleted.After(now) {
		at := metav1.NewTime(now)
		u.SetDeletionTimestamp(&at)
	}
}

// collectorFinalizers returns the finalizers with those that a garbage collector waits for, as the options
// say what is to become of dependents. Nobody removes these here, nor beside a kube-apiserver by itself.
func collectorFinalizers(finalizers []string, options *metav1.DeleteOptions) []string {
	wanted := ""
	switch policy, orphans := options.PropagationPolicy, orphanDependents(options); {
	case orphans != nil && *orphans, policy != nil && *policy == metav1.DeletePropagationOrphan:
		wanted = metav1.FinalizerOrphanDependents
	case orphans != nil:
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		wanted = metav1.FinalizerDeleteDependents
	case policy == nil:
		return finalizers // what the object has, counts
	}
	var all []string
	for _, f := range finalizers {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			all = append(all, f)
		}
	}
	if wanted != "" {
		all = append(all, wanted)
	}
	if len(all) == len(finalizers) && slices.Contains(finalizers, wanted) {
		return finalizers // in their order
	}
	return all
}

// orphanDependents is what clients sent before there was a PropagationPolicy, and what a kube-apiserver still
// follows.
func orphanDependents(options *metav1.DeleteOptions) *bool {
	//lint:ignore SA1019 it is the old way
	return options.OrphanDependents
}

// deleted is the answer to a deletion of which nothing is left.
func (m mutation) deleted(u *unstructured.Unstructured) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: u.GetName(), Group: m.t.typ.Group, Kind: m.t.typ.Names.Plural,
			UID: u.GetUID()},
	}
}
