package readapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// change is a request that writes.
type change struct {
	mutation
	writeOptions
	storage   *Storage
	strategic StrategicMerge
	decodable func(gvk schema.GroupVersionKind, object []byte) error
	warnings  []string
	// patches is set when the change is a patch, which needs an object to be applied to.
	patches bool
}

// mutate serves a request that writes.
func (h *handler) mutate(w http.ResponseWriter, r *http.Request, s *Storage, t *resource) {
	e, err := newEncoder(r, t)
	var body []byte
	if err == nil {
		body, err = readBody(r)
	}
	c := &change{mutation: mutation{t: t, now: s.options.Now()}, storage: s,
		strategic: h.options.StrategicMerge,
		decodable: h.options.Decodable}
	var done *written
	if err == nil {
		done, err = c.do(r, e, body)
	}
	for _, text := range c.warnings {
		w.Header().Add("Warning", warningHeader(text))
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	done.answer(w, r, e)
}

// do does what the request asks for.
func (c *change) do(r *http.Request, e *encoder, body []byte) (done *written, err error) {
	verb := verbOf(r.Method, c.t.name)
	if reason := c.t.typ.Rules.Refused; reason != "" {
		return nil, newStatusError(http.StatusNotImplemented, reasonNotImplemented,
			fmt.Sprintf("%s of %s is refused: %s", verb, c.t.typ.GroupResource(), reason))
	}
	creates := verb == "create" && c.t.name == "" && (c.t.namespace != "" || !c.t.typ.Namespaced)
	updates := (verb == "update" || verb == "patch") && c.t.name != ""
	if creates || updates {
		if c.writeOptions, err = parseWriteOptions(r, verb); err != nil {
			return nil, err
		}
	}
	switch {
	case creates:
		return c.insert(body)
	case updates && verb == "update":
		u, err := c.decode(body)
		if err != nil {
			return nil, err
		}
		return c.attempt(func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if old != nil {
				err = c.checkUID(old, u)
			}
			return u.DeepCopy(), err
		})
	case updates:
		patch, err := c.patchOf(r, body)
		if err != nil {
			return nil, err
		}
		c.patches = true
		return c.patch(patch)
	case verb == "delete" && c.t.subresource == "":
		options, err := parseDeleteOptions(r, body)
		if err != nil {
			return nil, err
		}
		return c.delete(options)
	case verb == "deletecollection" && (c.t.namespace != "" || !c.t.typ.Namespaced):
		return c.deleteCollection(r, e, body)
	}
	return nil, apierrors.NewMethodNotSupported(c.t.typ.GroupResource(), verb)
}

// decode returns the object that a client sends.
func (c *change) decode(body []byte) (*unstructured.Unstructured, error) {
	u, err := c.read(body)
	if err == nil && c.strict && len(u.problems) > 0 {
		err = runtime.NewStrictDecodingError(u.problems)
	}
	if err != nil {
		return nil, c.errUndecodable(u, body, err)
	}
	c.warnOf(u, "")
	return u.Unstructured, c.check(u.Unstructured)
}

// read is decodeBody that also decodes the body into the Go type of its kind.
func (c *change) read(body []byte) (sent, error) {
	u, err := c.decodeBody(body)
	gvk := c.t.gv.WithKind(c.t.typ.Names.Kind)
	if err == nil && c.decodable != nil && !c.t.typ.Custom && u.GroupVersionKind() == gvk {
		err = c.decodable(gvk, body)
	}
	return u, err
}

// warnOf has the client warned of what was left out.
func (c *change) warnOf(u sent, afterwards string) {
	c.warnings = nil // those of an earlier attempt
	if c.warn {
		for _, problem := range u.problems {
			c.warnings = append(c.warnings, problem.Error())
		}
	}
	if len(u.owners) > 0 {
		c.warnings = append(c.warnings,
			fmt.Sprintf(".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references in 1.20+, "+
				"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v", afterwards, joined(u.owners)))
	}
}

// warnOfFinalizers has the client warned of finalizers without a domain. A generated name that was taken
// warns again.
func (c *change) warnOfFinalizers(u, old *unstructured.Unstructured) {
	for _, text := range c.finalizerWarnings(u, old) {
		if !slices.Contains(c.warnings, text) {
			c.warnings = append(c.warnings, text)
		}
	}
}

func joined(uids []types.UID) string {
	text := make([]string, len(uids))
	for i, uid := range uids {
		text[i] = string(uid)
	}
	return strings.Join(text, ", ")
}

// written is what a write came to: an object, a status where nothing is left, or a list of what was deleted.
type written struct {
	code   int
	object Object
	status *metav1.Status
	list   *page
}

func (d *written) answer(w http.ResponseWriter, r *http.Request, e *encoder) {
	switch {
	case d.status != nil:
		writeJSON(w, r, d.code, d.status)
		return
	case d.list != nil:
		if err := writeList(newStream(w, e.shape.media), e, d.list); err != nil {
			panic(http.ErrAbortHandler) // the answer has begun, as with any list
		}
		return
	}
	err := e.prepare(false, d.object)
	var data []byte
	if err == nil {
		data, err = e.appendObject(nil, d.object)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeBytes(w, e.shape.media, d.code, data)
}

// store puts an object in the place of a state.
func (c *change) store(key string, before *object, u *unstructured.Unstructured, code int) (*written, error) {
	if _, err := identify(u); err != nil {
		return nil, c.refused(u, err)
	}
	if c.dry {
		body, err := encodeBody(u.Object)
		return &written{code: code, object: &object{key: key, stored: c.t.gv.Version, body: body}}, err
	}
	after, err := c.storage.replace(c.t.typ.GroupResource(), key, before, u.Object)
	var known apierrors.APIStatus
	if err != nil && !errors.Is(err, errChanged) && !errors.As(err, &known) {
		err = c.refused(u, err)
	}
	return &written{code: code, object: asObject(after)}, err
}

// refused is the answer for an object that cannot be stored.
func (c *change) refused(u *unstructured.Unstructured, err error) error {
	return newStatusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		strings.TrimSpace(fmt.Sprintf("%s %q is invalid: %v", c.t.typ.GroupKind(), u.GetName(), err)))
}
