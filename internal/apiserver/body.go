package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

type requestOptions struct {
	dryRun bool
	// strict refuses unknown and duplicate fields; warn warns of them.
	strict, warn bool
}

func parseRequestOptions(r *http.Request, verb string) (requestOptions, error) {
	var options metav1.PatchOptions // has the fields of all
	if err := scheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion,
		&options); err != nil {
		return requestOptions{}, apierrors.NewBadRequest(err.Error())
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
		return requestOptions{}, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName,
			Kind: kind}, "", problems)
	}
	return requestOptions{
		dryRun: len(options.DryRun) > 0,
		strict: options.FieldValidation == metav1.FieldValidationStrict,
		warn:   options.FieldValidation == metav1.FieldValidationWarn || options.FieldValidation == "",
	}, nil
}

// parseDeleteOptions returns the options in the body, or in the parameters if the body is empty.
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

type decodedObject struct {
	*unstructured.Unstructured
	// problems are the errors of strict field validation.
	problems []error
	droppedFields
}

// droppedFields are the parts of an object that are not stored.
type droppedFields struct {
	unknown         []string // paths
	duplicateOwners []string // UIDs
}

func (s *strategy) decodeBody(body []byte) (u decodedObject, err error) {
	u.Unstructured = &unstructured.Unstructured{}
	if u.problems, err = kjson.UnmarshalStrict(body, &u.Object); err != nil {
		return u, err
	}
	if u.Object == nil {
		return u, errors.New("the body is not an object")
	}
	if !s.collection.typ.Custom { // optional for built-in types
		for name, value := range map[string]string{"apiVersion": s.GVR.GroupVersion().String(),
			"kind": s.kind().Kind} {
			if text, _ := u.Object[name].(string); text == "" {
				u.Object[name] = value
			}
		}
	}
	if u.GetKind() == "" {
		return u, runtime.NewMissingKindErr(string(body))
	}
	if u.droppedFields, err = canonicalMetadata(u.Unstructured); err != nil {
		return u, err
	}
	if u.GroupVersionKind() == s.kind() {
		u.unknown = append(u.unknown, s.version.Conform(u.Object)...)
	}
	for _, path := range u.unknown {
		u.problems = append(u.problems, fmt.Errorf("unknown field %q", path))
	}
	return u, nil
}

// decodeError returns the error for a body that does not decode to an object of the type.
func (s *strategy) decodeError(u decodedObject, body []byte, err error) error {
	kind := s.kind().Kind
	if u.Object != nil && u.GetKind() != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
			u.GetKind(), u.GroupVersionKind().Version, kind, err))
	}
	const maxShown = 30
	summary := string(body)
	if len(summary) > maxShown {
		summary = summary[:maxShown] + " ..."
	}
	return apierrors.NewBadRequest(
		fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", kind, err, summary))
}
