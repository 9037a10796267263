package readapi

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
)

// maxAttempts is how often a patch is made anew because somebody else was faster.
const maxAttempts = 5

// maxOperations is how many operations a JSON patch may have, as with a kube-apiserver.
const maxOperations = 10000

// StrategicMerge applies a strategic merge patch to an object of a built-in kind, both in JSON. It needs to
// know the Go type of the kind, which tells how lists are merged. Its error is the answer, as bad request if
// it is no apierrors.APIStatus.
type StrategicMerge func(gvk schema.GroupVersionKind, object, patch []byte) ([]byte, error)

// patchFunc makes a patched object of one in JSON.
type patchFunc func(old []byte) ([]byte, error)

// patchTypes are what is accepted as patches of any type.
var patchTypes = string(types.JSONPatchType) + ", " + string(types.MergePatchType)

// patchOf reads the patch of a request.
func (c *change) patchOf(r *http.Request, body []byte) (patchFunc, error) {
	if !json.Valid(body) {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	switch types.PatchType(mediaOf(r)) {
	case types.MergePatchType:
		return func(old []byte) ([]byte, error) { return mergePatch(old, body) }, nil
	case types.JSONPatchType:
		return func(old []byte) ([]byte, error) { return applyPatch(old, body) }, nil
	case types.StrategicMergePatchType:
		return c.strategicPatch(body)
	}
	return nil, errUnsupportedMedia(acceptedMedia + patchTypes)
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

// strategicPatch is a patch that a kube-apiserver refuses for custom resources as well, which have no Go
// type.
func (c *change) strategicPatch(body []byte) (patchFunc, error) {
	if c.t.typ.Custom || c.strategic == nil {
		message := acceptedMedia + patchTypes
		if !c.t.typ.Custom {
			message = "strategic merge patches are not served here without the Go type of " +
				c.t.typ.Names.Kind + ": give the cluster a scheme that has it, use a merge patch, or " +
				elsewhere
		}
		return nil, errUnsupportedMedia(message)
	}
	gvk := c.t.gv.WithKind(c.t.typ.Names.Kind)
	return func(old []byte) ([]byte, error) {
		patched, err := c.strategic(gvk, old, body)
		var known apierrors.APIStatus
		if err != nil && !errors.As(err, &known) {
			err = apierrors.NewBadRequest(err.Error())
		}
		return patched, err
	}, nil
}

// patch updates the object by a patch, which is made anew when somebody else is faster, unless it names a
// version.
func (c *change) patch(patch patchFunc) (done *written, err error) {
	for range maxAttempts {
		var named bool
		done, err = c.attempt(func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			u, err := c.patched(old, patch)
			if err == nil {
				named = u.GetResourceVersion() != old.GetResourceVersion()
			}
			return u, err
		})
		if !apierrors.IsConflict(err) || named {
			return done, err
		}
	}
	return done, err
}

// patched applies a patch.
func (c *change) patched(old *unstructured.Unstructured,
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
	u, err := c.read(data)
	if err != nil {
		return nil, invalid(err)
	}
	if c.strict && len(u.problems) > 0 {
		return nil, invalid(runtime.NewStrictDecodingError(u.problems))
	}
	c.warnOf(u, " after mutating admission happens")
	return u.Unstructured, c.check(u.Unstructured)
}
