package readapi

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is the type and the object in the path of a request.
type target struct {
	gv                                     schema.GroupVersion
	namespace, resource, name, subresource string
	// namespaced is set if the path has a namespace in addition to the requested object.
	namespaced bool
}

// parsePath parses /api/v1/… and /apis/GROUP/VERSION/…, and reports whether the path has a type.
func parsePath(path string) (target, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var t target
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
