package readapi

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request describes a request for objects, according to its method, path and query.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete, deletecollection, or watch-list for a watch
	// that sends a list first.
	Verb string
	// GVR is the type. It need not exist.
	GVR schema.GroupVersionResource
	// Namespace, Name and Subresource are empty if the path has none.
	Namespace, Name, Subresource string
}

// ParseRequest parses a request. It returns false for paths without a type, such as discovery.
func ParseRequest(r *http.Request) (Request, bool) {
	t, ok := parsePath(r.URL.Path)
	if !ok {
		return Request{}, false
	}
	out := t.request("")
	query := r.URL.Query()
	watches := query.Has("watch") && !strings.EqualFold(query.Get("watch"), "false") &&
		query.Get("watch") != "0"
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		out.Verb = verbOf(r.Method, t.name)
	case t.name != "":
		out.Verb = "get"
	case watches && strings.EqualFold(query.Get("sendInitialEvents"), "true"):
		out.Verb = "watch-list"
	case watches:
		out.Verb = "watch"
	default:
		out.Verb = "list"
	}
	return out, true
}

func (t target) request(verb string) Request {
	return Request{
		Verb: verb, GVR: t.gv.WithResource(t.resource),
		Namespace: t.namespace, Name: t.name, Subresource: t.subresource,
	}
}
