package readapi

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writer is a Backend that clients can write to. The handler refuses writes to any other Backend. Package
// testcluster has a Writer.
type Writer interface {
	Backend
	// Write creates, updates, patches or deletes objects. It reads the body and the parameters of the
	// request. The warnings of the result are sent even if Write returns an error.
	Write(*WriteRequest) (WriteResult, error)
}

// WriteRequest is a request to a Writer.
type WriteRequest struct {
	Request
	// HTTP is the request as it was received.
	HTTP *http.Request
	// Collection has the stored objects of the request's type.
	Collection Collection
	// List returns the objects that a deletecollection selects. It also reports invalid selectors. Write can
	// refuse the request before it calls List.
	List func() ([]Object, error)
}

// WriteResult is the result of a Write. For a deletecollection, the handler responds with the deleted
// objects, which it has from WriteRequest.List. For other verbs it responds with Status, or with Object if
// Status is nil.
type WriteResult struct {
	// Code is the HTTP status code.
	Code     int
	Object   Object
	Status   *metav1.Status
	Warnings []string
}

// write serves a request to create, update, patch or delete.
func (h *handler) write(w http.ResponseWriter, r *http.Request, writer Writer, res *resource) {
	if res.name == "" && res.typ.Namespaced && !res.namespaced {
		if res.typ.Custom {
			notFound(w) // as for an unknown path
		} else {
			WriteError(w, r, errMethodNotAllowed())
		}
		return
	}
	var result WriteResult
	var deleted *page
	e, err := newEncoder(r, res)
	if err == nil {
		request := &WriteRequest{Request: res.request(verbOf(r.Method, res.name)), HTTP: r,
			Collection: res.collection}
		if request.Verb == "deletecollection" {
			deleted = e.deferList(request)
		}
		result, err = writer.Write(request)
	}
	for _, text := range result.Warnings {
		w.Header().Add("Warning", warningHeader(text))
	}
	switch {
	case err != nil:
		WriteError(w, r, err)
	case deleted != nil:
		if err := writeList(newStream(w, e.form.mediaType), e, deleted); err != nil {
			panic(http.ErrAbortHandler) // the answer is already under way
		}
	case result.Status != nil:
		writeJSON(w, r, result.Code, result.Status)
	default:
		e.writeObject(w, r, result.Code, result.Object)
	}
}

// deferList sets request.List, and returns an empty page. A call of request.List fills the page with the
// selected objects.
func (e *encoder) deferList(request *WriteRequest) *page {
	r, p := request.HTTP, &page{}
	request.List = func() ([]Object, error) {
		options, err := parseListOptions(r.URL.Query())
		if err != nil {
			return nil, err
		}
		selected, err := e.resource.list(r.Context(), options, NewTimeSlice(nil))
		if err != nil {
			return nil, err
		}
		*p = *selected
		return p.objects, e.prepare(true, p.objects...)
	}
	return p
}
