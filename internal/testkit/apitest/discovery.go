package apitest

import (
	"net/http"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Type is a type that a server serves.
type Type struct {
	GVR                    schema.GroupVersionResource
	Kind                   string
	Singular               string
	Namespaced             bool
	ShortNames, Categories []string
	// Verbs default to all that a server has.
	Verbs []string
	// Stored is the version under which the objects are kept, when it is another one: those of this version are
	// the same objects, with another apiVersion. Default: that of GVR.
	Stored string
}

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serveDiscovery writes one of the two documents of aggregated discovery, with one version for each group.
func serveDiscovery(w http.ResponseWriter, r *http.Request, types []Type) {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	at := map[string]int{}
	for _, t := range types {
		if (t.GVR.Group == "") != (r.URL.Path == "/api") {
			continue
		}
		i, ok := at[t.GVR.Group]
		if !ok {
			i = len(list.Items)
			at[t.GVR.Group] = i
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{
				ObjectMeta: metav1.ObjectMeta{Name: t.GVR.Group},
				Versions:   []apidiscovery.APIVersionDiscovery{{Version: t.GVR.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}},
			})
		}
		version := &list.Items[i].Versions[0]
		version.Resources = append(version.Resources, t.document())
	}
	writeJSON(w, aggregated, http.StatusOK, list)
}

func (t Type) document() apidiscovery.APIResourceDiscovery {
	d := apidiscovery.APIResourceDiscovery{
		Resource: t.GVR.Resource, SingularResource: t.Singular, Scope: apidiscovery.ScopeCluster,
		ResponseKind: &metav1.GroupVersionKind{Group: t.GVR.Group, Version: t.GVR.Version, Kind: t.Kind},
		Verbs:        t.Verbs, ShortNames: t.ShortNames, Categories: t.Categories,
	}
	if t.Namespaced {
		d.Scope = apidiscovery.ScopeNamespace
	}
	if d.Verbs == nil {
		d.Verbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return d
}
