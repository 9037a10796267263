package references

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
)

// TypeGraph is a graph as seen by the objects of one type. It returns their keys, namespace/name, sorted and
// without duplicates.
type TypeGraph struct {
	graph  *Graph
	target Object
	names  []string // known without a source
}

// NewTypeGraph returns an empty TypeGraph with the names of the declared references and [Owners]. Use it to
// check queries.
func NewTypeGraph(declared []*indexers.Reference) *TypeGraph {
	return &TypeGraph{graph: New(), names: newExtractor(declared).names}
}

// ForType returns the TypeGraph of a type.
func (g *Graph) ForType(t Type) *TypeGraph {
	return &TypeGraph{graph: g, target: Object{Group: t.Group, Resource: t.Resource, Kind: t.Kind}}
}

// Names returns the names of the references of the type's sources, sorted.
func (v *TypeGraph) Names() []string {
	v.graph.mu.Lock()
	defer v.graph.mu.Unlock()
	names := append([]string{Owners}, v.names...)
	for _, k := range v.graph.mu.find(v.target) {
		for m := range k.sources {
			names = append(names, m.extract.names...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Dangling returns the objects with a dangling reference with this name, or with any if name is empty.
func (v *TypeGraph) Dangling(name string) []string {
	return v.keys(v.graph.Dangling(), name, func(r Reference) Object { return r.From })
}

// KeysReferringTo returns the objects that refer to o, by references with this name, or by any if name is
// empty. Like [Graph.To], it leaves out references to another object of that name.
func (v *TypeGraph) KeysReferringTo(o Object, name string) []string {
	return v.keys(v.graph.To(o), name, func(r Reference) Object { return r.From })
}

// CountRecreated counts the references that KeysReferringTo leaves out because they are to another object of
// that name.
func (v *TypeGraph) CountRecreated(o Object, name string) int {
	return len(v.keys(v.graph.ToOtherUIDs(o), name, func(r Reference) Object { return r.From }))
}

// KeysReferredBy returns the objects that o refers to, existing or not. It leaves out references with the UID
// of another object than the existing one.
func (v *TypeGraph) KeysReferredBy(o Object, name string) []string {
	return v.keys(v.graph.referencesFrom(o, func(e *edge) bool { return !e.refersToOtherUID("") }), name,
		func(r Reference) Object { return r.To })
}

// keys returns the keys of the objects of the TypeGraph's type.
func (v *TypeGraph) keys(refs []Reference, name string, objectOf func(Reference) Object) []string {
	keys := []string{}
	for _, r := range refs {
		o := objectOf(r)
		key, ok := o.StoreKey()
		if ok && v.isOfType(Type{Group: o.Group, Resource: o.Resource, Kind: o.Kind}) &&
			(name == "" || r.Name == name) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, strings.Compare)
	return slices.Compact(keys)
}

func (v *TypeGraph) isOfType(t Type) bool {
	return t.Group == v.target.Group && (t.Kind != "" && t.Kind == v.target.Kind || t.Resource != "" &&
		t.Resource == v.target.Resource)
}

// WhyNothing returns why KeysReferringTo or, with from, KeysReferredBy can be empty for an existing object:
// an unknown type name, no source for the type, or a missing namespace. It returns "" otherwise.
func (v *TypeGraph) WhyNothing(o Object, from bool) string {
	v.graph.mu.Lock()
	defer v.graph.mu.Unlock()
	name := Object{Group: o.Group, Resource: o.Resource, Kind: o.Kind}.String()
	name = strings.TrimSpace(name)
	found := v.graph.mu.find(o)
	followed := slices.ContainsFunc(found, func(k *typeNode) bool { return len(k.sources) > 0 })
	switch {
	case from && !followed:
		return "no informer follows objects of type " + name + ", so their references are unknown"
	case !followed && !slices.ContainsFunc(found, func(k *typeNode) bool { return len(k.nodes) > 0 }):
		return "nothing refers to objects of type " + name +
			", and no informer follows them; a type is written as its kind or plural name with its group, as in Issuer.cert-manager.io"
	case o.Namespace == "" && slices.ContainsFunc(found, func(k *typeNode) bool {
		return k.known && k.Namespaced
	}):
		return "objects of type " + name + " have a namespace; write namespace/" + o.Name
	}
	return ""
}
