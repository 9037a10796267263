package offline

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/builtin"
	"github.com/crdcache/crdcache/readapi"
)

// inAll are the plurals of the category "all".
const inAll = " pods replicationcontrollers services daemonsets deployments replicasets statefulsets horizontalpodautoscalers cronjobs jobs "

// knownType returns the type of a kind that every cluster has, in one version. The short names, the categories and the scope
// of such a kind cannot be inferred from objects.
func knownType(gvk schema.GroupVersionKind) (readapi.Type, bool) {
	k, ok := builtin.Find(gvk.Group, gvk.Kind, "")
	if !ok {
		return readapi.Type{}, false
	}
	t := readapi.Type{
		Group: k.Group, Namespaced: k.Namespaced,
		Names: crd.Names{Plural: k.Plural, Kind: k.Kind, ShortNames: strings.Fields(k.ShortNames)},
		Versions: []readapi.Version{{
			Name: gvk.Version, Subresources: []string{"status"}, SelectableFields: strings.Fields(k.Fields),
		}},
	}
	if strings.Contains(inAll, " "+k.Plural+" ") {
		t.Names.Categories = []string{"all"}
	}
	return t, true
}

// inferType makes a type up from a kind and where its objects are.
func inferType(gvk schema.GroupVersionKind, namespaced bool) readapi.Type {
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	return readapi.Type{
		Group: gvk.Group, Namespaced: namespaced,
		Names:    crd.Names{Plural: plural.Resource, Singular: singular.Resource, Kind: gvk.Kind},
		Versions: []readapi.Version{{Name: gvk.Version}},
	}
}
