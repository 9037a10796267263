package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// maxNameAttempts is the number of names tried for an object with generateName, as by kube-apiserver.
const maxNameAttempts = 8

func (r *request) create(body []byte) (result readapi.WriteResult, err error) {
	u, err := r.decode(body)
	if err != nil {
		return result, err
	}
	generatesName := u.GetName() == "" && u.GetGenerateName() != ""
	for range maxNameAttempts {
		if result, err = r.createOnce(u.DeepCopy()); !generatesName || !apierrors.IsAlreadyExists(err) {
			return result, err
		}
	}
	return readapi.WriteResult{}, err
}

func (r *request) createOnce(u *unstructured.Unstructured) (result readapi.WriteResult, err error) {
	// As on a kube-apiserver, admission is checked before validation, and again when the object is stored.
	if err := r.collection.admitCreate(r.Namespace, u.GetName()); err != nil {
		return result, err
	}
	if err := r.prepareForCreate(u); err != nil {
		return result, err
	}
	r.addFinalizerWarnings(u, nil)
	key := naming.KeyOf(u.GetNamespace(), u.GetName())
	if existing := r.collection.get(key); existing != nil {
		return result, r.existsError(u, existing)
	}
	u.SetResourceVersion("")
	result, err = r.store(key, nil, u, http.StatusCreated)
	if errors.Is(err, errConcurrentChange) {
		err = r.existsError(u, nil)
	}
	return result, err
}

// admitCreate returns an error if the type, its definition or the namespace is missing or terminating.
func (c *servedCollection) admitCreate(namespace, name string) error {
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	current := c.storage.mu.types[c.typ.GroupResource()]
	if current == nil {
		return apierrors.NewNotFound(c.typ.GroupResource(), name) // the type was just removed
	}
	return c.storage.admitCreate(current, namespace, name)
}

// existsError returns the error for a name that is taken.
func (r *request) existsError(u *unstructured.Unstructured, existing *object) error {
	err := apierrors.NewAlreadyExists(r.resource(), u.GetName())
	if u.GetGenerateName() != "" {
		err = apierrors.NewGenerateNameConflict(r.resource(), u.GetName(), 1)
	}
	if existing == nil {
		return err
	}
	if content, decodeErr := readapi.Decode(existing); decodeErr == nil &&
		(&unstructured.Unstructured{Object: content}).GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = fmt.Sprintf("object is being deleted: %s", err.ErrStatus.Message)
	}
	return err
}

// changeFunc returns the new state of an object. old is nil if the object does not exist.
type changeFunc func(old *unstructured.Unstructured) (*unstructured.Unstructured, error)

func (r *request) update(change changeFunc) (result readapi.WriteResult, err error) {
	key := naming.KeyOf(r.Namespace, r.Name)
	before := r.collection.get(key)
	if before == nil {
		return r.createOnUpdate(change)
	}
	old, err := r.decodeInRequestVersion(before)
	if err != nil {
		return result, err
	}
	u, err := change(old.DeepCopy())
	if err != nil {
		return result, err
	}
	removed, err := r.prepareForUpdate(old, u)
	if err != nil {
		return result, err
	}
	r.addFinalizerWarnings(u, old)
	if removed {
		result.Code = http.StatusOK
		result.Object, err = r.asStored(key, u)
		if err == nil && !r.dryRun {
			_, err = r.writer.replace(r.resource(), key, before, nil)
		}
	} else {
		result, err = r.store(key, before, u, http.StatusOK)
	}
	if errors.Is(err, errConcurrentChange) {
		err = apierrors.NewConflict(r.resource(), r.Name, err)
	}
	return result, err
}

func (r *request) decodeInRequestVersion(o *object) (*unstructured.Unstructured, error) {
	content, err := readapi.Decode(o)
	if err != nil {
		return nil, err
	}
	content["apiVersion"] = r.GVR.GroupVersion().String()
	return &unstructured.Unstructured{Object: content}, nil
}

// createOnUpdate creates a missing object if the rules of the type allow that.
func (r *request) createOnUpdate(change changeFunc) (result readapi.WriteResult, err error) {
	if !r.collection.rules.CreateOnUpdate || r.Subresource != "" || r.Verb == "patch" {
		return result, apierrors.NewNotFound(r.resource(), r.Name)
	}
	u, err := change(nil)
	if err != nil {
		return result, err
	}
	if u.GetUID() != "" {
		return result, r.checkUID(&unstructured.Unstructured{}, u)
	}
	if _, err := requestedVersion(u); err != nil {
		return result, err
	}
	u.SetResourceVersion("")
	return r.createOnce(u)
}

// maxAttempts is the number of attempts to apply a patch despite concurrent writes.
const maxAttempts = 5

// PatchFunc applies a patch to an object in JSON.
type PatchFunc func(old []byte) ([]byte, error)

// patch applies a patch to the object. It retries after a concurrent write, unless it sets a version.
func (r *request) patch(body []byte) (result readapi.WriteResult, err error) {
	parse := r.writer.options.ParsePatch
	if parse == nil {
		return result, apierrors.NewMethodNotSupported(r.resource(), "patch")
	}
	patch, err := parse(r.kind(), r.collection.typ.Custom, r.http, body)
	if err != nil {
		return result, err
	}
	for range maxAttempts {
		var setsVersion bool
		result, err = r.update(func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			u, err := r.applyTo(old, patch)
			if err == nil {
				setsVersion = u.GetResourceVersion() != old.GetResourceVersion()
			}
			return u, err
		})
		if !apierrors.IsConflict(err) || setsVersion {
			return result, err
		}
	}
	return result, err
}

func (r *request) applyTo(old *unstructured.Unstructured,
	patch PatchFunc) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(old.Object)
	if err != nil {
		return nil, err
	}
	if data, err = patch(data); err != nil {
		return nil, err
	}
	invalid := func(err error) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "",
			field.ErrorList{field.Invalid(field.NewPath("patch"), string(data), err.Error())})
	}
	u, err := r.decodeTyped(data)
	if err != nil {
		return nil, invalid(err)
	}
	if r.strict && len(u.problems) > 0 {
		return nil, invalid(runtime.NewStrictDecodingError(u.problems))
	}
	r.setWarnings(u, " after mutating admission happens")
	return u.Unstructured, r.checkTarget(u.Unstructured)
}
