package readapi

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/crdcache/crdcache/internal/naming"
)

func (h *handler) get(w http.ResponseWriter, r *http.Request, res *resource) {
	e, err := newEncoder(r, res)
	var o Object
	if err == nil {
		o, err = res.get(r.URL.Query().Get("resourceVersion"))
	}
	if err != nil {
		WriteError(w, r, err)
		return
	}
	e.writeObject(w, r, http.StatusOK, o)
}

// writeObject answers with an object in the requested form.
func (e *encoder) writeObject(w http.ResponseWriter, r *http.Request, code int, o Object) {
	err := e.prepare(false, o)
	var data []byte
	if err == nil {
		data, err = e.appendObject(nil, o)
	}
	if err != nil {
		WriteError(w, r, err)
		return
	}
	writeBytes(w, e.form.mediaType, code, data)
}

// get returns an object at least as recent as a resource version.
func (r *resource) get(notOlderThan string) (Object, error) {
	if problems := path.IsValidPathSegmentName(r.name); len(problems) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", r.name,
			strings.Join(problems, ";")))
	}
	version, err := parseResourceVersion(notOlderThan)
	if err != nil {
		return nil, errInvalidVersion(err)
	}
	if current := r.collection.ResourceVersion(); version > current {
		return nil, NewResourceVersionTooLargeError(version, current)
	}
	if o := r.collection.Get(naming.KeyOf(r.namespace, r.name)); o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(r.typ.GroupResource(), r.name)
}

func resourceVersionOf(o Object) string {
	m, err := partialMetadataOf(o)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
