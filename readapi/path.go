package readapi

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is what the path of a request for objects names.
type target struct {
	gv                                     schema.GroupVersion
	namespace, resource, name, subresource string
	// namespaced is whether the path names a namespace, other than as the object that is asked for.
	namespaced bool
}

// parsePath reads /api/v1/… and /apis/GROUP/VERSION/…, and reports whether the path names a resource.
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
	// A namespace by itself, and its subresources, are in no namespace.
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
