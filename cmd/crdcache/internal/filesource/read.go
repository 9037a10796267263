package filesource

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// knownType returns the type of a built-in kind in one version.
func knownType(gvk schema.GroupVersionKind) (readapi.Type, bool) {
	k, ok := naming.FindBuiltin(gvk.Group, gvk.Kind, "")
	if !ok {
		return readapi.Type{}, false
	}
	return readapi.Type{
		Group: k.Group, Namespaced: k.Has(naming.Namespaced),
		Names: crd.Names{Plural: k.Plural, Kind: k.Kind, ShortNames: k.ShortNames(),
			Categories: k.Categories()},
		Versions: []readapi.Version{{
			Name: gvk.Version, Subresources: []string{"status"}, SelectableFields: k.SelectableFields(),
		}},
	}, true
}

func inferType(gvk schema.GroupVersionKind, namespaced bool) readapi.Type {
	return readapi.Type{
		Group: gvk.Group, Namespaced: namespaced,
		Names:    crd.Names{Plural: naming.GuessPlural(gvk.Kind), Kind: gvk.Kind},
		Versions: []readapi.Version{{Name: gvk.Version}},
	}
}
