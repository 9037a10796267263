package readapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxBody is how large a request may be, as with a kube-apiserver.
const maxBody = 3 << 20

// acceptedMedia begins the answer to other media types.
const acceptedMedia = "the body of the request was in an unknown format - accepted media types include: "

// elsewhere is where to go for what is refused here.
const elsewhere = "use a real kube-apiserver for that, such as envtest's"

// readBody reads a body in JSON or YAML, as JSON.
func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	switch media := mediaOf(r); media {
	case mediaYAML, "application/x-yaml":
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return body, nil
	case "", mediaJSON, string(types.JSONPatchType), string(types.MergePatchType),
		string(types.StrategicMergePatchType):
		return body, nil
	case string(types.ApplyYAMLPatchType), string(types.ApplyCBORPatchType):
		return nil, errUnsupportedMedia("server-side apply is not served here: use a merge patch, or " +
			elsewhere)
	case "application/vnd.kubernetes.protobuf":
		return nil, errUnsupportedMedia(media +
			" is not served here: set the ContentType of the client's rest.Config to " + mediaJSON)
	default:
		if r.Method == http.MethodPatch {
			return nil, errUnsupportedMedia(acceptedMedia + patchTypes)
		}
		return nil, errUnsupportedMedia(acceptedMedia + mediaJSON + ", " + mediaYAML)
	}
}

// mediaOf is the media type of the body of a request; "" is JSON.
func mediaOf(r *http.Request) string {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media
}

func errUnsupportedMedia(message string) error {
	return newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, message)
}

// writeOptions are what the parameters of a request that writes say.
type writeOptions struct {
	dry bool
	// strict refuses fields that are unknown or there twice, warn warns of them.
	strict, warn bool
}

// parseWriteOptions reads the parameters of a request to create, update or patch.
func parseWriteOptions(r *http.Request, verb string) (writeOptions, error) {
	var options metav1.PatchOptions // has the fields of all
	if err := scheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion,
		&options); err != nil {
		return writeOptions{}, apierrors.NewBadRequest(err.Error())
	}
	kind := "CreateOptions"
	problems := validation.ValidateFieldManager(options.FieldManager, field.NewPath("fieldManager"))
	switch verb {
	case "update":
		kind = "UpdateOptions"
	case "patch":
		kind = "PatchOptions"
		if options.Force != nil {
			problems = append(problems, field.Forbidden(field.NewPath("force"),
				"may not be specified for non-apply patch"))
		}
	}
	problems = append(problems, validation.ValidateDryRun(field.NewPath("dryRun"), options.DryRun)...)
	problems = append(problems, validation.ValidateFieldValidation(field.NewPath("fieldValidation"),
		options.FieldValidation)...)
	if len(problems) > 0 {
		return writeOptions{}, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "",
			problems)
	}
	return writeOptions{
		dry:    len(options.DryRun) > 0,
		strict: options.FieldValidation == metav1.FieldValidationStrict,
		warn:   options.FieldValidation == metav1.FieldValidationWarn || options.FieldValidation == "",
	}, nil
}

// parseDeleteOptions reads the body of a request to delete, or its parameters where it has none.
func parseDeleteOptions(r *http.Request, body []byte) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	var err error
	if len(body) > 0 {
		err = json.Unmarshal(body, options)
	} else {
		err = scheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, options)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if problems := validation.ValidateDeleteOptions(options); len(problems) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "",
			problems)
	}
	return options, nil
}

// sent is an object as a client sends it.
type sent struct {
	*unstructured.Unstructured
	// problems are what a kube-apiserver only tells of where it is asked to be strict.
	problems []error
	oddities
}

// decodeBody returns the object of a body as a kube-apiserver reads it.
func (m mutation) decodeBody(body []byte) (u sent, err error) {
	u.Unstructured = &unstructured.Unstructured{}
	if u.problems, err = kjson.UnmarshalStrict(body, &u.Object); err != nil {
		return u, err
	}
	if u.Object == nil {
		return u, errors.New("the body is not an object")
	}
	if !m.t.typ.Custom { // which a client may leave out
		for name, value := range map[string]string{"apiVersion": m.t.gv.String(),
			"kind": m.t.typ.Names.Kind} {
			if text, _ := u.Object[name].(string); text == "" {
				u.Object[name] = value
			}
		}
	}
	if u.GetKind() == "" {
		return u, runtime.NewMissingKindErr(string(body))
	}
	if u.oddities, err = canonicalMetadata(u.Unstructured); err != nil {
		return u, err
	}
	if u.GetAPIVersion() == m.t.gv.String() && u.GetKind() == m.t.typ.Names.Kind {
		u.unknown = append(u.unknown, m.t.version.conform(u.Object)...)
	}
	for _, path := range u.unknown {
		u.problems = append(u.problems, fmt.Errorf("unknown field %q", path))
	}
	return u, nil
}

// errUndecodable is the answer to a body that is not an object of the type.
func (m mutation) errUndecodable(u sent, body []byte, err error) error {
	kind := m.t.typ.Names.Kind
	if u.Object != nil && u.GetKind() != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
			u.GetKind(), u.GroupVersionKind().Version, kind, err))
	}
	const shown = 30
	summary := string(body)
	if len(summary) > shown {
		summary = summary[:shown] + " ..."
	}
	return apierrors.NewBadRequest(
		fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", kind, err, summary))
}
