package readapi

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mutation has the rules by which a kube-apiserver writes objects. It is pure: it is given the state before
// and what a client sends, and returns the state after.
type mutation struct {
	t   *resource
	now time.Time
}

// hasStatus reports whether the status is written by itself.
func (m mutation) hasStatus() bool { return slices.Contains(m.t.version.Subresources, "status") }

// check refuses what is not an object of the type in the place that the request names.
func (m mutation) check(u *unstructured.Unstructured) error {
	if want := m.t.gv.String(); u.GetAPIVersion() != want {
		return apierrors.NewBadRequest(
			fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
				u.GetAPIVersion(), want))
	}
	// of custom resources it is validated
	if want := m.t.typ.Names.Kind; u.GetKind() != want && !m.t.typ.Custom {
		return apierrors.NewBadRequest(
			fmt.Sprintf("the kind in the data (%s) does not match the expected kind (%s)", u.GetKind(), want))
	}
	switch namespace := u.GetNamespace(); {
	case namespace == m.t.namespace:
	case namespace == "" || !m.t.typ.Namespaced:
		u.SetNamespace(m.t.namespace) // which is empty where there are none
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	switch name := u.GetName(); {
	case m.t.name == "" || name == m.t.name:
	case name == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", m.t.name))
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, m.t.name))
	}
	return nil
}

// create completes a new object.
func (m mutation) create(u *unstructured.Unstructured) error {
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(u.GetGenerateName() + rand.String(5))
	}
	u.SetUID(uuid.NewUUID())
	u.SetCreationTimestamp(metav1.NewTime(m.now))
	u.SetDeletionTimestamp(nil)
	u.SetDeletionGracePeriodSeconds(nil)
	if m.hasStatus() {
		delete(u.Object, "status")
	}
	if !m.t.typ.Rules.NoGeneration {
		u.SetGeneration(1)
	}
	if err := m.validate(u, nil); err != nil {
		return err
	}
	if version := u.GetResourceVersion(); version != "" && version != "0" {
		return errInternal("resourceVersion should not be set on objects to be created")
	}
	return nil
}

// update completes an object that takes the place of another one, and reports whether nothing is left of it:
// it was to be deleted, and the last finalizer is gone.
func (m mutation) update(old, u *unstructured.Unstructured) (gone bool, err error) {
	if err := m.checkVersion(old, u); err != nil {
		return false, err
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
	m.keep(old, u)
	if err := m.validate(u, old); err != nil {
		return false, err
	}
	return old.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 && !holdsContent(u), nil
}

// checkVersion refuses what is based on another state than old.
func (m mutation) checkVersion(old, u *unstructured.Unstructured) error {
	given := u.GetResourceVersion()
	version, err := basedOn(u)
	switch {
	case err != nil:
		return err
	case version == 0 && m.t.typ.Rules.UnconditionalUpdate:
		u.SetResourceVersion(old.GetResourceVersion())
	case version == 0:
		problem := field.Invalid(field.NewPath("metadata", "resourceVersion"), 0,
			"must be specified for an update")
		return apierrors.NewInvalid(schema.GroupKind{Group: m.t.typ.Group, Kind: m.t.typ.Names.Plural},
			u.GetName(), field.ErrorList{problem})
	case given != old.GetResourceVersion():
		return apierrors.NewConflict(m.t.typ.GroupResource(), u.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// basedOn is the resource version that an object names, or 0.
func basedOn(u *unstructured.Unstructured) (uint64, error) {
	given := u.GetResourceVersion()
	if given == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		return 0, errInternal(err.Error())
	}
	return version, nil
}

// checkUID refuses an update of another object than that which is there.
func (m mutation) checkUID(old, u *unstructured.Unstructured) error {
	const failed = "Precondition failed" // in the words of a kube-apiserver
	if uid := u.GetUID(); uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(m.t.typ.GroupResource(), u.GetName(),
			fmt.Errorf("%s: UID in precondition: %v, UID in object meta: %v", failed, uid, old.GetUID()))
	}
	return nil
}

// keep restores what an update cannot change, and counts the generation.
func (m mutation) keep(old, u *unstructured.Unstructured) {
	if u.GetUID() == "" {
		u.SetUID(old.GetUID())
	}
	if created := old.GetCreationTimestamp(); !created.IsZero() {
		u.SetCreationTimestamp(created)
	}
	if deleted := old.GetDeletionTimestamp(); deleted != nil {
		u.SetDeletionTimestamp(deleted)
	}
	if period := old.GetDeletionGracePeriodSeconds(); period != nil &&
		u.GetDeletionGracePeriodSeconds() == nil {
		u.SetDeletionGracePeriodSeconds(period)
	}
	if m.hasStatus() {
		delete(u.Object, "status")
		if status, there := old.Object["status"]; there {
			u.Object["status"] = status
		}
	}
	if m.t.typ.GroupResource() == definitions {
		acceptChanges(u)
	}
	u.SetGeneration(old.GetGeneration())
	if !m.t.typ.Rules.NoGeneration && !m.sameContent(old.Object, u.Object) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
}

// sameContent compares all but the metadata, and the status where that is written by itself.
func (m mutation) sameContent(a, b map[string]any) bool {
	content := func(of map[string]any) map[string]any {
		rest := map[string]any{}
		for key, value := range of {
			if key != "apiVersion" && key != "metadata" && !(key == "status" && m.hasStatus()) {
				rest[key] = value
			}
		}
		return rest
	}
	return apiequality.Semantic.DeepEqual(content(a), content(b))
}
