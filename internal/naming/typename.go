package naming

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FormatType returns RESOURCE.VERSION.GROUP, without empty parts.
func FormatType(gvr schema.GroupVersionResource) string {
	name := gvr.Resource
	for _, part := range []string{gvr.Version, gvr.Group} {
		if part != "" {
			name += "." + part
		}
	}
	return name
}

// CompareTypes orders types by group, resource and version.
func CompareTypes(a, b schema.GroupVersionResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Version, b.Version))
}
