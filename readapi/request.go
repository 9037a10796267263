package readapi

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is what a request for objects asks for, as far as its method, path and query tell.
type Request struct {
	// Verb is get, list, watch, or watch-list for a watch that lists first; otherwise that of writing:
	// create, update, patch, delete or deletecollection.
	Verb string
	// GVR is the type by its plural, whether it exists or not.
	GVR schema.GroupVersionResource
	// Namespace, Name and Subresource are empty where the path has none.
	Namespace, Name, Subresource string
}

// ParseRequest returns what a request asks for. It is false for paths that name no type, such as those of
// discovery.
func ParseRequest(r *http.Request) (Request, bool) {
	t, ok := parsePath(r.URL.Path)
	if !ok {
		return Request{}, false
	}
	out := Request{
		GVR:       t.gv.WithResource(t.resource),
		Namespace: t.namespace, Name: t.name, Subresource: t.subresource,
	}
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
