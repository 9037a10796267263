package testcluster

import (
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/serving/readapi"
)

// maxBody is the maximum size of a request in bytes, as on a kube-apiserver.
const maxBody = 3 << 20

const (
	mediaJSON = "application/json"
	mediaYAML = "application/yaml"
)

const (
	// acceptedMedia begins the error for other media types.
	acceptedMedia = "the body of the request was in an unknown format - accepted media types include: "
	// acceptedPatches is the error for other media types of patches. Every type accepts these.
	acceptedPatches = acceptedMedia + string(types.JSONPatchType) + ", " + string(types.MergePatchType)
)

// realServerHint is the remedy for features that only a kube-apiserver has.
const realServerHint = "use a real kube-apiserver for that, such as envtest's"

// readBody returns a body in JSON or YAML as JSON.
func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	switch media := mediaTypeOf(r); media {
	case mediaYAML, "application/x-yaml":
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return body, nil
	case "", mediaJSON, string(types.JSONPatchType), string(types.MergePatchType),
		string(types.StrategicMergePatchType):
		return body, nil
	case string(types.ApplyYAMLPatchType), string(types.ApplyCBORPatchType):
		return nil, newMediaTypeError("server-side apply is not served here: use a merge patch, or " +
			realServerHint)
	case "application/vnd.kubernetes.protobuf":
		return nil, newMediaTypeError(media +
			" is not served here: set the ContentType of the client's rest.Config to " + mediaJSON)
	default:
		if r.Method == http.MethodPatch {
			return nil, newMediaTypeError(acceptedPatches)
		}
		return nil, newMediaTypeError(acceptedMedia + mediaJSON + ", " + mediaYAML)
	}
}

// mediaTypeOf returns the media type of a body. The empty string means JSON.
func mediaTypeOf(r *http.Request) string {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media
}

func newMediaTypeError(message string) error {
	return readapi.NewStatusError(http.StatusUnsupportedMediaType,
		metav1.StatusReasonUnsupportedMediaType, message)
}
