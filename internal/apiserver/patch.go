package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdcache/crdcache/serving/readapi"
)

// maxAttempts is the number of attempts to apply a patch despite concurrent writes.
const maxAttempts = 5

// maxOperations is the maximum number of operations of a JSON patch, as on a kube-apiserver.
const maxOperations = 10000

type patchFunc func(old []byte) ([]byte, error)

// patchTypes are the media types of patches that every type accepts.
var patchTypes = string(types.JSONPatchType) + ", " + string(types.MergePatchType)

func (r *request) parsePatch(body []byte) (patchFunc, error) {
	if !json.Valid(body) {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	switch types.PatchType(mediaTypeOf(r.http)) {
	case types.MergePatchType:
		return func(old []byte) ([]byte, error) { return mergePatch(old, body) }, nil
	case types.JSONPatchType:
		return func(old []byte) ([]byte, error) { return applyPatch(old, body) }, nil
	case types.StrategicMergePatchType:
		return r.strategicPatch(body)
	}
	return nil, unsupportedMediaType(acceptedMedia + patchTypes)
}

func mergePatch(old, patch []byte) ([]byte, error) {
	var content map[string]any
	if err := json.Unmarshal(patch, &content); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	merged, err := jsonpatch.MergePatch(old, patch)
	if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
		err = apierrors.NewBadRequest(err.Error())
	}
	return merged, err
}

func applyPatch(old, operations []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(patch) > maxOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(patch)))
	}
	patched, err := patch.Apply(old)
	if err != nil {
		err = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{},
			"", err.Error(), 0, false)
	}
	return patched, err
}

// strategicPatch returns an error for custom resources, as a kube-apiserver does: they have no Go type.
func (r *request) strategicPatch(body []byte) (patchFunc, error) {
	merge, custom := r.writer.options.StrategicMerge, r.collection.typ.Custom
	if custom || merge == nil {
		message := acceptedMedia + patchTypes
		if !custom {
			message = "strategic merge patches are not served here without the Go type of " +
				r.kind().Kind + ": give the cluster a scheme that has it, use a merge patch, or " + realServerHint
		}
		return nil, unsupportedMediaType(message)
	}
	return func(old []byte) ([]byte, error) {
		patched, err := merge(r.kind(), old, body)
		var apiStatus apierrors.APIStatus
		if err != nil && !errors.As(err, &apiStatus) {
			err = apierrors.NewBadRequest(err.Error())
		}
		return patched, err
	}, nil
}

// patch applies a patch to the object. It retries after a concurrent write, unless it sets a version.
func (r *request) patch(body []byte) (result readapi.WriteResult, err error) {
	patch, err := r.parsePatch(body)
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
	patch patchFunc) (*unstructured.Unstructured, error) {
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
