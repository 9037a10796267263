package readapi

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// get serves one object.
func (h *handler) get(w http.ResponseWriter, r *http.Request, t *resource) {
	e, err := newEncoder(r, t)
	if err != nil {
		writeError(w, r, err)
		return
	}
	o, err := t.get(r.URL.Query().Get("resourceVersion"))
	if err == nil {
		err = e.prepare(false, o)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	data, err := e.appendObject(nil, o)
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeBytes(w, e.shape.media, http.StatusOK, data)
}

// get returns an object that is at least as new as a version.
func (t *resource) get(notOlderThan string) (Object, error) {
	if problems := content.IsPathSegmentName(t.name); len(problems) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", t.name,
			strings.Join(problems, ";")))
	}
	version, err := parseResourceVersion(notOlderThan)
	if err != nil {
		return nil, errVersion(err)
	}
	if current := t.collection.ResourceVersion(); version > current {
		return nil, errTooNew(version, current)
	}
	if o := t.collection.Get(objectKey(t.namespace, t.name)); o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(t.typ.GroupResource(), t.name)
}

// resourceVersionOf is the one in the metadata of the object.
func resourceVersionOf(o Object) string {
	m, err := partialOf(o)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
