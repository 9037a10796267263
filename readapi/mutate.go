package readapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// maxBody is how large a request may be, as with a kube-apiserver.
const maxBody = 3 << 20

// maxAttempts is how often a patch is made anew because somebody else was faster.
const maxAttempts = 5

// mutate serves a request that writes.
func (h *handler) mutate(w http.ResponseWriter, r *http.Request, s *Storage, t *resource) {
	e, err := newEncoder(r, t)
	var body []byte
	if err == nil {
		body, err = readBody(r)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	m := mutation{t: t, now: s.options.Now()}
	verb := verbOf(r.Method, t.name)
	dry, err := dryRun(verb, r.URL.Query()["dryRun"])
	if err != nil {
		writeError(w, r, err)
		return
	}
	var done *written
	switch {
	case verb == "create" && t.name == "":
		done, err = m.insert(s, body, dry)
	case verb == "update" && t.name != "":
		done, err = m.attempt(s, dry, func(*unstructured.Unstructured) (*unstructured.Unstructured, error) { return decodeObject(body) })
	case verb == "patch" && t.name != "":
		var patch patchFunc
		if patch, err = patchOf(r, body); err == nil {
			done, err = m.patch(s, dry, patch)
		}
	case verb == "delete" && t.subresource == "":
		done, err = m.delete(s, body, dry)
	default:
		err = apierrors.NewMethodNotSupported(t.typ.GroupResource(), verb)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	done.answer(w, r, e)
}

// dryRun reports whether a request that writes is to change nothing. A value that is not known is refused, as by a
// kube-apiserver: whoever sends it does not want what it asks for to be done.
func dryRun(verb string, values []string) (bool, error) {
	if errs := validation.ValidateDryRun(field.NewPath("dryRun"), values); len(errs) > 0 {
		kinds := map[string]string{"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions", "delete": "DeleteOptions"}
		return false, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kinds[verb]}, "", errs)
	}
	return len(values) > 0, nil
}

// written is what a write came to: an object, or a status where nothing is left.
type written struct {
	code   int
	object Object
	status *metav1.Status
}

func (d *written) answer(w http.ResponseWriter, r *http.Request, e *encoder) {
	if d.status != nil {
		writeJSON(w, r, d.code, d.status)
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

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // "" is JSON
	switch media {
	case mediaYAML, "application/x-yaml":
		return yaml.YAMLToJSON(body)
	case "", mediaJSON, string(types.JSONPatchType), string(types.MergePatchType):
		return body, nil
	case string(types.ApplyYAMLPatchType):
		return nil, newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"server-side apply is not served here: use a merge patch, or a real kube-apiserver such as envtest's")
	}
	return nil, newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+mediaJSON+", "+mediaYAML+", "+string(types.JSONPatchType)+", "+string(types.MergePatchType))
}

func decodeObject(body []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &u.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if u.Object == nil {
		return nil, apierrors.NewBadRequest("the body is not an object")
	}
	if metadata, there := u.Object["metadata"]; there {
		if _, ok := metadata.(map[string]any); !ok {
			return nil, apierrors.NewBadRequest("metadata is not an object")
		}
	}
	return u, nil
}

// insert stores a new object.
func (m mutation) insert(s *Storage, body []byte, dry bool) (*written, error) {
	u, err := decodeObject(body)
	if err != nil {
		return nil, err
	}
	if err := m.create(u); err != nil {
		return nil, err
	}
	key := objectKey(u.GetNamespace(), u.GetName())
	exists := apierrors.NewAlreadyExists(m.t.typ.GroupResource(), u.GetName())
	if m.t.collection.Get(key) != nil {
		return nil, exists
	}
	done, err := m.store(s, key, nil, u, http.StatusCreated, dry)
	if errors.Is(err, errChanged) {
		return nil, exists
	}
	return done, err
}

// attempt updates the object that is there by what change makes of it.
func (m mutation) attempt(s *Storage, dry bool, change func(old *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*written, error) {
	key := objectKey(m.t.namespace, m.t.name)
	before, _ := m.t.collection.Get(key).(*object)
	if before == nil {
		return nil, apierrors.NewNotFound(m.t.typ.GroupResource(), m.t.name)
	}
	content, err := decode(before)
	if err != nil {
		return nil, err
	}
	content["apiVersion"] = m.t.gv.String()
	old := &unstructured.Unstructured{Object: content}
	u, err := change(old.DeepCopy())
	if err != nil {
		return nil, err
	}
	gone, err := m.update(old, u)
	if err != nil {
		return nil, err
	}
	last := u
	if gone {
		u = nil
	}
	done, err := m.store(s, key, before, u, http.StatusOK, dry)
	if gone && err == nil {
		var body []byte
		body, err = encodeBody(last.Object)
		done = &written{code: http.StatusOK, object: &object{key: key, stored: m.t.gv.Version, body: body}}
	}
	if errors.Is(err, errChanged) {
		return nil, apierrors.NewConflict(m.t.typ.GroupResource(), m.t.name, err)
	}
	return done, err
}

// patchFunc makes a patched object of one in JSON.
type patchFunc func(old []byte) ([]byte, error)

func patchOf(r *http.Request, body []byte) (patchFunc, error) {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch types.PatchType(media) {
	case types.MergePatchType:
		return func(old []byte) ([]byte, error) { return jsonpatch.MergePatch(old, body) }, nil
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return patch.Apply, nil
	}
	return nil, newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+string(types.JSONPatchType)+", "+string(types.MergePatchType))
}

// patch updates the object by a patch, which is made anew when somebody else is faster, unless it names a version.
func (m mutation) patch(s *Storage, dry bool, patch patchFunc) (done *written, err error) {
	for range maxAttempts {
		var named bool
		done, err = m.attempt(s, dry, func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			version := old.GetResourceVersion()
			data, err := json.Marshal(old.Object)
			if err != nil {
				return nil, err
			}
			if data, err = patch(data); err != nil {
				return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
			}
			u, err := decodeObject(data)
			if err == nil {
				named = u.GetResourceVersion() != version
			}
			return u, err
		})
		if !apierrors.IsConflict(err) || named {
			return done, err
		}
	}
	return done, err
}

// delete deletes the object, or marks it where it has finalizers.
func (m mutation) delete(s *Storage, body []byte, dry bool) (*written, error) {
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		if err := json.Unmarshal(body, options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	wanted, err := dryRun("delete", options.DryRun)
	if err != nil {
		return nil, err
	}
	dry = dry || wanted
	key := objectKey(m.t.namespace, m.t.name)
	for {
		before, _ := m.t.collection.Get(key).(*object)
		if before == nil {
			return nil, apierrors.NewNotFound(m.t.typ.GroupResource(), m.t.name)
		}
		content, err := decode(before)
		if err != nil {
			return nil, err
		}
		content["apiVersion"] = m.t.gv.String()
		u, gone, err := m.remove(&unstructured.Unstructured{Object: content}, options)
		if err != nil {
			return nil, err
		}
		var done *written
		if gone {
			status := m.deleted(u)
			if done = (&written{code: http.StatusOK, status: &status}); !dry {
				_, err = s.replace(m.t.typ.GroupResource(), key, before, nil)
			}
		} else {
			done, err = m.store(s, key, before, u, http.StatusOK, dry)
		}
		if !errors.Is(err, errChanged) {
			return done, err
		}
	}
}

// store puts an object, or with nil nothing, in the place of a state.
func (m mutation) store(s *Storage, key string, before *object, u *unstructured.Unstructured, code int, dry bool) (*written, error) {
	if u == nil {
		if dry {
			return nil, nil
		}
		_, err := s.replace(m.t.typ.GroupResource(), key, before, nil)
		return nil, err
	}
	if _, err := identify(u); err != nil {
		return nil, m.refused(u, err)
	}
	if dry {
		body, err := encodeBody(u.Object)
		return &written{code: code, object: &object{key: key, stored: m.t.gv.Version, body: body}}, err
	}
	after, err := s.replace(m.t.typ.GroupResource(), key, before, u.Object)
	if err != nil && !errors.Is(err, errChanged) {
		err = m.refused(u, err)
	}
	return &written{code: code, object: asObject(after)}, err
}

// refused is the answer for an object that cannot be stored.
func (m mutation) refused(u *unstructured.Unstructured, err error) error {
	return newStatusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		strings.TrimSpace(fmt.Sprintf("%s %q is invalid: %v", m.t.typ.GroupKind(), u.GetName(), err)))
}
