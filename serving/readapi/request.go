package readapi

import (
	"net/http"
	"slices"
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

// ParseRequest returns the type, object and verb that a request names. It returns false for paths without a
// type, such as discovery.
func ParseRequest(r *http.Request) (Request, bool) {
	t, ok := parsePath(r.URL.Path)
	if !ok {
		return Request{}, false
	}
	request := t.request("")
	query := r.URL.Query()
	isWatch := query.Has("watch") && !strings.EqualFold(query.Get("watch"), "false") &&
		query.Get("watch") != "0"
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		request.Verb = verbOf(r.Method, t.name)
	case t.name != "":
		request.Verb = "get"
	case isWatch && strings.EqualFold(query.Get("sendInitialEvents"), "true"):
		request.Verb = "watch-list"
	case isWatch:
		request.Verb = "watch"
	default:
		request.Verb = "list"
	}
	return request, true
}

func (t requestTarget) request(verb string) Request {
	return Request{
		Verb: verb, GVR: t.gv.WithResource(t.resource),
		Namespace: t.namespace, Name: t.name, Subresource: t.subresource,
	}
}

// requestTarget is the type and the object in the path of a request.
type requestTarget struct {
	gv                                     schema.GroupVersion
	namespace, resource, name, subresource string
	// namespaced is set if the path has a namespace before the resource.
	namespaced bool
}

// parsePath parses /api/v1/… and /apis/GROUP/VERSION/…, and reports whether the path has a type.
func parsePath(path string) (requestTarget, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var t requestTarget
	switch {
	case len(parts) > 2 && parts[0] == "api":
		t.gv.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis" && parts[1] != "":
		t.gv.Group, t.gv.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	if slices.Contains(parts, "") {
		return t, false
	}
	// a namespace itself is not in a namespace
	if parts[0] == "namespaces" && len(parts) > 2 &&
		!(len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")) {
		t.namespaced, t.namespace, parts = true, parts[1], parts[2:]
	}
	if len(parts) > 3 {
		return t, false
	}
	parts = append(parts, "", "")
	t.resource, t.name, t.subresource = parts[0], parts[1], parts[2]
	return t, true
}
