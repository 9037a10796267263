package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdcache/crdcache/serving/readapi"
)

// strategy has the rules by which a kube-apiserver writes objects. It does not access the storage: its
// methods compute the new state from the old one and from the object of the client.
type strategy struct {
	readapi.Request
	collection *servedCollection
	version    *readapi.Version
	now        time.Time
}

func (s *strategy) resource() schema.GroupResource { return s.GVR.GroupResource() }

func (s *strategy) kind() schema.GroupVersionKind {
	return s.GVR.GroupVersion().WithKind(s.collection.typ.Names.Kind)
}

func (s *strategy) hasStatus() bool { return slices.Contains(s.version.Subresources, "status") }

// checkTarget returns an error unless an object has the type, the namespace and the name of the request. It
// sets a missing namespace.
func (s *strategy) checkTarget(u *unstructured.Unstructured) error {
	if want := s.GVR.GroupVersion().String(); u.GetAPIVersion() != want {
		return apierrors.NewBadRequest(
			fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
				u.GetAPIVersion(), want))
	}
	// the kind of custom resources is validated later
	if want := s.kind().Kind; u.GetKind() != want && !s.collection.typ.Custom {
		return apierrors.NewBadRequest(
			fmt.Sprintf("the kind in the data (%s) does not match the expected kind (%s)", u.GetKind(), want))
	}
	switch namespace := u.GetNamespace(); {
	case namespace == s.Namespace:
	case namespace == "" || !s.collection.typ.Namespaced:
		u.SetNamespace(s.Namespace)
	default:
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request")
	}
	switch name := u.GetName(); {
	case s.Name == "" || name == s.Name:
	case name == "":
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s based on URL) was undeterminable: name must be provided", s.Name))
	default:
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, s.Name))
	}
	return nil
}

func (s *strategy) prepareForCreate(u *unstructured.Unstructured) error {
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(u.GetGenerateName() + rand.String(5))
	}
	u.SetUID(newUID())
	u.SetCreationTimestamp(metav1.NewTime(s.now))
	u.SetDeletionTimestamp(nil)
	u.SetDeletionGracePeriodSeconds(nil)
	if s.hasStatus() {
		delete(u.Object, "status")
	}
	if !s.collection.rules.NoGeneration {
		u.SetGeneration(1)
	}
	if err := s.validate(u, nil); err != nil {
		return err
	}
	if version := u.GetResourceVersion(); version != "" && version != "0" {
		return readapi.NewStatusError(http.StatusInternalServerError, "", "resourceVersion should not be set on objects to be created")
	}
	return nil
}

// prepareForUpdate sets the fields of an updated object and validates it. It reports whether the object can
// be removed: it is terminating and the update has removed the last finalizer.
func (s *strategy) prepareForUpdate(old, u *unstructured.Unstructured) (removed bool, err error) {
	if err := s.checkVersion(old, u); err != nil {
		return false, err
	}
	if s.Subresource == "status" {
		status, exists := u.Object["status"]
		u.Object = old.DeepCopy().Object
		delete(u.Object, "status")
		if exists {
			u.Object["status"] = status
		}
		return false, nil
	}
	s.copyImmutable(old, u)
	if err := s.validate(u, old); err != nil {
		return false, err
	}
	return old.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 && !hasContent(u), nil
}

// checkVersion returns an error if u is not based on the resource version of old.
func (s *strategy) checkVersion(old, u *unstructured.Unstructured) error {
	version, err := requestedVersion(u)
	switch {
	case err != nil:
		return err
	case version == 0 && s.collection.rules.UnconditionalUpdate:
		u.SetResourceVersion(old.GetResourceVersion())
	case version == 0:
		problem := field.Invalid(field.NewPath("metadata", "resourceVersion"), 0,
			"must be specified for an update")
		return apierrors.NewInvalid(schema.GroupKind{Group: s.GVR.Group, Kind: s.GVR.Resource},
			u.GetName(), field.ErrorList{problem})
	case u.GetResourceVersion() != old.GetResourceVersion():
		return apierrors.NewConflict(s.resource(), u.GetName(), errors.New(
			"the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// requestedVersion returns the resource version of an object, or 0.
func requestedVersion(u *unstructured.Unstructured) (uint64, error) {
	text := u.GetResourceVersion()
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, readapi.NewStatusError(http.StatusInternalServerError, "", err.Error())
	}
	return version, nil
}

func (s *strategy) checkUID(old, u *unstructured.Unstructured) error {
	const preconditionFailed = "Precondition failed" // the text of a kube-apiserver
	if uid := u.GetUID(); uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(s.resource(), u.GetName(),
			fmt.Errorf("%s: UID in precondition: %v, UID in object meta: %v", preconditionFailed, uid, old.GetUID()))
	}
	return nil
}

// copyImmutable copies the fields that an update cannot change, and sets the generation.
func (s *strategy) copyImmutable(old, u *unstructured.Unstructured) {
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
	if s.hasStatus() {
		delete(u.Object, "status")
		if status, exists := old.Object["status"]; exists {
			u.Object["status"] = status
		}
	}
	if s.resource() == definitions {
		acceptDefinition(u)
	}
	u.SetGeneration(old.GetGeneration())
	if !s.collection.rules.NoGeneration &&
		!apiequality.Semantic.DeepEqual(generationFields(old.Object, s.hasStatus()),
			generationFields(u.Object, s.hasStatus())) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
}

// prepareForDelete returns the terminating object, and reports whether it can be removed.
func (s *strategy) prepareForDelete(old *unstructured.Unstructured,
	options *metav1.DeleteOptions) (u *unstructured.Unstructured, removed bool, err error) {
	if err := s.checkPreconditions(old, options.Preconditions); err != nil {
		return nil, false, err
	}
	u = old.DeepCopy()
	switch {
	case s.resource() == definitions:
		return u, markDefinition(u, options, s.now), nil
	case !hasContent(u):
		return u, markDeleted(u, options, s.now), nil
	case slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic},
		u.GetName()):
		return nil, false, apierrors.NewForbidden(namespaces, u.GetName(),
			errors.New("this namespace may not be deleted"))
	}
	setDeletionTimestamp(u, s.now)
	u.Object["status"] = map[string]any{"phase": "Terminating"}
	return u, false, nil
}

func (s *strategy) checkPreconditions(old *unstructured.Unstructured, p *metav1.Preconditions) error {
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Group: s.GVR.Group, Resource: s.kind().Kind},
			old.GetName(), fmt.Errorf(format, args...))
	}
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != old.GetUID():
		return conflict("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *p.UID, old.GetUID())
	case p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion():
		return conflict("the ResourceVersion in the precondition (%s) does not match the ResourceVersion "+
			"in record (%s). The object might have been modified", *p.ResourceVersion, old.GetResourceVersion())
	}
	return nil
}
