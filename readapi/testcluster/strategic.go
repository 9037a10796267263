package testcluster

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// decodable returns an error if an object cannot be decoded into its Go type in the scheme.
func (c *Cluster) decodable(gvk schema.GroupVersionKind, object []byte) error {
	typed, err := c.options.Scheme.New(gvk)
	if err != nil {
		return nil //nolint:nilerr // any object of a type outside the scheme is accepted
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(object, typed)
}

// strategicMerge applies a strategic merge patch according to the tags of the Go type.
func (c *Cluster) strategicMerge(gvk schema.GroupVersionKind, object, patch []byte) ([]byte, error) {
	typed, err := c.options.Scheme.New(gvk)
	if err != nil {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
			Reason:  metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("the scheme of the cluster in memory has no %s, so that it cannot apply a strategic merge patch: add the type to the scheme, or use a merge patch", gvk),
		}}
	}
	return strategicpatch.StrategicMergePatch(object, patch, typed)
}
