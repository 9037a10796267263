package testcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/crdcache/crdcache/internal/apiserver"
)

// maxOperations is the maximum number of operations of a JSON patch, as on a kube-apiserver.
const maxOperations = 10000

func (c *Cluster) parsePatch(gvk schema.GroupVersionKind, isCustom bool, r *http.Request,
	patch []byte) (apiserver.PatchFunc, error) {
	if !json.Valid(patch) {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	switch types.PatchType(mediaTypeOf(r)) {
	case types.MergePatchType:
		return func(old []byte) ([]byte, error) { return mergePatch(old, patch) }, nil
	case types.JSONPatchType:
		return func(old []byte) ([]byte, error) { return applyOperations(old, patch) }, nil
	case types.StrategicMergePatchType:
		return c.strategicPatch(gvk, isCustom, patch)
	}
	return nil, newMediaTypeError(acceptedPatches)
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

// applyOperations applies a JSON patch.
func applyOperations(old, operations []byte) ([]byte, error) {
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

// strategicPatch uses the tags of the Go type. It returns an error for custom resources, as a kube-apiserver
// does: they have no Go type.
func (c *Cluster) strategicPatch(gvk schema.GroupVersionKind, isCustom bool,
	patch []byte) (apiserver.PatchFunc, error) {
	switch {
	case isCustom:
		return nil, newMediaTypeError(acceptedPatches)
	case c.options.Scheme == nil:
		return nil, newMediaTypeError("strategic merge patches are not served here without the Go type of " +
			gvk.Kind + ": give the cluster a scheme that has it, use a merge patch, or " + realServerHint)
	}
	return func(old []byte) ([]byte, error) {
		typed, err := c.options.Scheme.New(gvk)
		if err != nil {
			return nil, newMediaTypeError(fmt.Sprintf("cannot apply a strategic merge patch: the scheme of the cluster in memory has no %s: add the type to the scheme, or use a merge patch", gvk))
		}
		patched, err := strategicpatch.StrategicMergePatch(old, patch, typed)
		if err != nil {
			err = apierrors.NewBadRequest(err.Error())
		}
		return patched, err
	}, nil
}
