package apiserver

import (
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdcache/crdcache/serving/readapi"
)

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
