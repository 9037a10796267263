package loader

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource maps a kind to its path.
type resource struct {
	gvr        schema.GroupVersionResource
	namespaced bool
	hasStatus  bool
}

type resourceIndex map[schema.GroupVersionKind]resource

// resources requests all types from the server.
func (l *loader) resources() (resourceIndex, error) {
	_, lists, err := l.discovery.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("discover resources: %w", err)
	}
	index := resourceIndex{}
	withStatus := map[schema.GroupVersionResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if parent, sub, isSub := strings.Cut(r.Name, "/"); isSub {
				if sub == "status" {
					withStatus[gv.WithResource(parent)] = true
				}
				continue
			}
			index[gv.WithKind(r.Kind)] = resource{gvr: gv.WithResource(r.Name), namespaced: r.Namespaced}
		}
	}
	for gvk, r := range index {
		r.hasStatus = withStatus[r.gvr]
		index[gvk] = r
	}
	return index, nil
}
