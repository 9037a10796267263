package apiserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// WriterOptions configures a Writer. The zero value is usable.
type WriterOptions struct {
	// ParsePatch parses a patch, in JSON, of an object of a kind. Default: patches are rejected.
	ParsePatch func(gvk schema.GroupVersionKind, custom bool, r *http.Request, body []byte) (PatchFunc, error)
	// ReadBody reads the body of a request as JSON. Default: it is JSON.
	ReadBody func(*http.Request) ([]byte, error)
	// Decodable returns an error if an object of a built-in kind does not fit its Go type. Optional.
	Decodable func(gvk schema.GroupVersionKind, object []byte) error
}

// Writer returns the storage as a backend that clients can write to by the rules of a kube-apiserver. There
// is no validation against schemas, no admission, no defaulting of built-in types, no server-side apply and
// no garbage collection.
func (s *Storage) Writer(options WriterOptions) readapi.Writer { return writer{s, options} }

type writer struct {
	*Storage
	options WriterOptions
}

func (w writer) Write(wr *readapi.WriteRequest) (readapi.WriteResult, error) {
	c, ok := wr.Collection.(*servedCollection)
	if !ok || c.storage != w.Storage {
		return readapi.WriteResult{}, readapi.NewStatusError(http.StatusInternalServerError, "", "the request has a collection of another backend")
	}
	r := &request{
		strategy: strategy{Request: wr.Request, collection: c, version: c.typ.Version(wr.GVR.Version),
			now: w.Storage.options.Now()},
		writer: w, http: wr.HTTP, list: wr.List,
	}
	read := func(r *http.Request) ([]byte, error) { return io.ReadAll(r.Body) }
	if w.options.ReadBody != nil {
		read = w.options.ReadBody
	}
	body, err := read(wr.HTTP)
	var result readapi.WriteResult
	if err == nil {
		result, err = r.execute(body)
	}
	result.Warnings = r.warnings
	return result, err
}

type request struct {
	strategy
	requestOptions
	writer   writer
	http     *http.Request
	list     func() ([]readapi.Object, error)
	warnings []string
}

func (r *request) execute(body []byte) (result readapi.WriteResult, err error) {
	if reason := r.collection.rules.RefusalReason; reason != "" {
		return result, readapi.NewStatusError(http.StatusNotImplemented, "NotImplemented",
			fmt.Sprintf("%s of %s is refused: %s", r.Verb, r.resource(), reason))
	}
	isCreate := r.Verb == "create" && r.Name == ""
	isUpdate := (r.Verb == "update" || r.Verb == "patch") && r.Name != ""
	if isCreate || isUpdate {
		if r.requestOptions, err = parseRequestOptions(r.http, r.Verb); err != nil {
			return result, err
		}
	}
	switch {
	case isCreate:
		return r.create(body)
	case isUpdate && r.Verb == "update":
		u, err := r.decode(body)
		if err != nil {
			return result, err
		}
		return r.update(func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if old != nil {
				err = r.checkUID(old, u)
			}
			return u.DeepCopy(), err
		})
	case isUpdate:
		return r.patch(body)
	case r.Verb == "delete" && r.Subresource == "":
		options, err := parseDeleteOptions(r.http, body)
		if err != nil {
			return result, err
		}
		return r.delete(options)
	case r.Verb == "deletecollection":
		return r.deleteCollection(body)
	}
	return result, apierrors.NewMethodNotSupported(r.resource(), r.Verb)
}

func (r *request) decode(body []byte) (*unstructured.Unstructured, error) {
	u, err := r.decodeTyped(body)
	if err == nil && r.strict && len(u.problems) > 0 {
		err = runtime.NewStrictDecodingError(u.problems)
	}
	if err != nil {
		return nil, r.decodeError(u, body, err)
	}
	r.setWarnings(u, "")
	return u.Unstructured, r.checkTarget(u.Unstructured)
}

// decodeTyped decodes a body like decodeBody, and also into the Go type of its kind.
func (r *request) decodeTyped(body []byte) (decodedObject, error) {
	u, err := r.decodeBody(body)
	if decodable := r.writer.options.Decodable; err == nil && decodable != nil &&
		!r.collection.typ.Custom && u.GroupVersionKind() == r.kind() {
		err = decodable(r.kind(), body)
	}
	return u, err
}

// setWarnings replaces the warnings of an earlier attempt.
func (r *request) setWarnings(u decodedObject, when string) {
	r.warnings = nil
	if r.warn {
		r.warnings = naming.Texts(u.problems, error.Error)
	}
	if len(u.duplicateOwners) > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf(".metadata.ownerReferences contains duplicate entries%s; "+
			"API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; "+
			"please fix your requests; duplicate UID(s) observed: %s", when,
			strings.Join(u.duplicateOwners, ", ")))
	}
}

// addFinalizerWarnings adds each warning once: attempts with other generated names repeat them.
func (r *request) addFinalizerWarnings(u, old *unstructured.Unstructured) {
	r.warnings = naming.AppendMissing(r.warnings, r.finalizerWarnings(u, old)...)
}

func (r *request) store(key string, before *object, u *unstructured.Unstructured,
	code int) (readapi.WriteResult, error) {
	result := readapi.WriteResult{Code: code}
	_, err := validateIdentity(u)
	if err != nil {
		return result, r.invalid(u, err)
	}
	if r.dryRun {
		result.Object, err = r.asStored(key, u)
		return result, err
	}
	after, err := r.writer.replace(r.resource(), key, before, u.Object)
	var apiStatus apierrors.APIStatus
	if err != nil && !errors.Is(err, errConcurrentChange) && !errors.As(err, &apiStatus) {
		err = r.invalid(u, err)
	}
	result.Object = objectOrNil(after)
	return result, err
}

// asStored returns an object as it would be stored.
func (r *request) asStored(key string, u *unstructured.Unstructured) (readapi.Object, error) {
	body, err := encodeBody(u.Object)
	return &object{key: key, version: r.GVR.Version, body: body}, err
}

func (r *request) invalid(u *unstructured.Unstructured, err error) error {
	return readapi.NewStatusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		strings.TrimSpace(fmt.Sprintf("%s %q is invalid: %v", r.collection.typ.GroupKind(), u.GetName(), err)))
}
