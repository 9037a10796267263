package session

import (
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/references"
)

// AddToGraph adds a cache with the options of a reader to a graph.
func AddToGraph(graph *references.Graph, reader *Reader, cached Cache) error {
	declared, options, err := reader.Declared(cached.Resource)
	if err == nil {
		_, err = graph.Add(references.InformerSource{
			Type: ReferenceType(cached.Resource), References: declared.References, Informer: cached.Informer,
			HasSelector: options.LabelSelector != nil || options.FieldSelector != nil,
			Namespaces:  declared.Namespaces.Matches,
		})
	}
	return err
}

func ReferenceType(r discovery.Resource) references.Type {
	return references.Type{Group: r.GVR.Group, Resource: r.GVR.Resource, Kind: r.GVK.Kind,
		Namespaced: r.Scope == discovery.Namespaced}
}

// FindType returns the preferred version of a type with the group and the kind or resource.
func FindType(catalog *discovery.Catalog, t references.Type) (found discovery.Resource, ok bool) {
	for _, r := range catalog.Resources() {
		isNamed := t.Kind != "" && r.GVK.Kind == t.Kind || t.Kind == "" && r.GVR.Resource == t.Resource
		if r.GVR.Group == t.Group && isNamed && r.HasVerbs("list") && (!ok || r.Preferred) {
			found, ok = r, true
		}
	}
	return found, ok
}
