package readapi

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mutation has the rules by which a kube-apiserver writes custom resources. It is pure: it is given the state before and
// what a client sends, and returns the state after, nil for none.
type mutation struct {
	t   *resource
	now time.Time
}

// hasStatus reports whether the status is written by itself.
func (m mutation) hasStatus() bool { return slices.Contains(m.t.version.Subresources, "status") }

// check refuses what is not an object of the type in the place that the request names.
func (m mutation) check(u *unstructured.Unstructured) error {
	if want := m.t.gv.String(); u.GetAPIVersion() != want {
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", u.GetAPIVersion(), want))
	}
	if want := m.t.typ.Names.Kind; u.GetKind() != want {
		return apierrors.NewBadRequest(fmt.Sprintf("the kind in the data (%s) does not match the expected kind (%s)", u.GetKind(), want))
	}
	if m.t.typ.Namespaced && u.GetNamespace() == "" {
		u.SetNamespace(m.t.namespace)
	}
	if u.GetNamespace() != m.t.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if m.t.name != "" && u.GetName() != m.t.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", u.GetName(), m.t.name))
	}
	return nil
}

// create completes a new object.
func (m mutation) create(u *unstructured.Unstructured) error {
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(u.GetGenerateName() + rand.String(5))
	}
	if err := m.check(u); err != nil {
		return err
	}
	if u.GetName() == "" {
		return m.invalid(u, field.Required(field.NewPath("metadata", "name"), "name or generateName is required"))
	}
	if u.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	u.SetUID(uuid.NewUUID())
	u.SetCreationTimestamp(metav1.NewTime(m.now))
	u.SetDeletionTimestamp(nil)
	u.SetDeletionGracePeriodSeconds(nil)
	u.SetGeneration(1)
	if m.hasStatus() && m.t.typ.GroupResource() != definitions {
		delete(u.Object, "status")
	}
	return nil
}

// update completes an object that takes the place of another one, and reports whether nothing is left of it: it was to be
// deleted, and the last finalizer is gone.
func (m mutation) update(old, u *unstructured.Unstructured) (gone bool, err error) {
	if err := m.check(u); err != nil {
		return false, err
	}
	switch version := u.GetResourceVersion(); {
	case version == "":
		return false, m.invalid(u, field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	case version != old.GetResourceVersion():
		return false, apierrors.NewConflict(m.t.typ.GroupResource(), u.GetName(), errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := u.GetUID(); uid != "" && uid != old.GetUID() {
		return false, m.preconditionFailed(u.GetName(), "UID", uid, old.GetUID())
	}
	if m.t.subresource == "status" {
		status, there := u.Object["status"]
		u.Object = old.DeepCopy().Object
		delete(u.Object, "status")
		if there {
			u.Object["status"] = status
		}
		return false, nil
	}
	if added := slices.DeleteFunc(u.GetFinalizers(), func(f string) bool { return slices.Contains(old.GetFinalizers(), f) }); old.GetDeletionTimestamp() != nil && len(added) > 0 {
		return false, m.invalid(u, field.Forbidden(field.NewPath("metadata", "finalizers"),
			fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %#v", added)))
	}
	m.keep(old, u)
	return old.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0, nil
}

// keep restores what an update cannot change.
func (m mutation) keep(old, u *unstructured.Unstructured) {
	u.SetUID(old.GetUID())
	u.SetCreationTimestamp(old.GetCreationTimestamp())
	u.SetDeletionTimestamp(old.GetDeletionTimestamp())
	u.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	u.SetGenerateName(old.GetGenerateName())
	if m.hasStatus() {
		delete(u.Object, "status")
		if status, there := old.Object["status"]; there {
			u.Object["status"] = status
		}
	}
	u.SetGeneration(old.GetGeneration())
	without := func(content map[string]any) map[string]any {
		rest := map[string]any{}
		for key, value := range content {
			if key != "apiVersion" && key != "metadata" && !(key == "status" && m.hasStatus()) {
				rest[key] = value
			}
		}
		return rest
	}
	if !reflect.DeepEqual(without(old.Object), without(u.Object)) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
}

// preconditionFailed is the conflict of a request that wants another state of an object, in the words of a kube-apiserver.
func (m mutation) preconditionFailed(name, what string, want, have any) error {
	const failed = "Precondition failed"
	return apierrors.NewConflict(m.t.typ.GroupResource(), name,
		fmt.Errorf("%s: %s in precondition: %v, %s in object meta: %v", failed, what, want, what, have))
}

// remove returns the object as it is when it is deleted, and whether nothing is left of it.
func (m mutation) remove(old *unstructured.Unstructured, options *metav1.DeleteOptions) (u *unstructured.Unstructured, gone bool, err error) {
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != old.GetUID() {
			return nil, false, m.preconditionFailed(old.GetName(), "UID", *p.UID, old.GetUID())
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			return nil, false, m.preconditionFailed(old.GetName(), "ResourceVersion", *p.ResourceVersion, old.GetResourceVersion())
		}
	}
	u = old.DeepCopy()
	if policy := options.PropagationPolicy; policy != nil && old.GetDeletionTimestamp() == nil {
		// What a garbage collector waits for, of which there is none here, nor beside a kube-apiserver by itself.
		finalizer := map[metav1.DeletionPropagation]string{metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents, metav1.DeletePropagationOrphan: metav1.FinalizerOrphanDependents}[*policy]
		if finalizer != "" && !slices.Contains(u.GetFinalizers(), finalizer) {
			u.SetFinalizers(append(u.GetFinalizers(), finalizer))
		}
	}
	if len(u.GetFinalizers()) == 0 {
		return u, true, nil
	}
	if old.GetDeletionTimestamp() == nil {
		at, none := metav1.NewTime(m.now), int64(0)
		u.SetDeletionTimestamp(&at)
		u.SetDeletionGracePeriodSeconds(&none)
		u.SetGeneration(u.GetGeneration() + 1)
	}
	return u, false, nil
}

func (m mutation) invalid(u *unstructured.Unstructured, problem *field.Error) error {
	return apierrors.NewInvalid(m.t.typ.GroupKind(), u.GetName(), field.ErrorList{problem})
}

// deleted is the answer to a deletion of which nothing is left.
func (m mutation) deleted(u *unstructured.Unstructured) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: u.GetName(), Group: m.t.typ.Group, Kind: m.t.typ.Names.Plural, UID: u.GetUID()},
	}
}
