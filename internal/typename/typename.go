// Package typename formats and orders resource types.
package typename

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Format returns RESOURCE.VERSION.GROUP, without empty parts.
func Format(gvr schema.GroupVersionResource) string {
	name := gvr.Resource
	for _, part := range []string{gvr.Version, gvr.Group} {
		if part != "" {
			name += "." + part
		}
	}
	return name
}

// Compare orders types by group, resource and version.
func Compare(a, b schema.GroupVersionResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Version, b.Version))
}
