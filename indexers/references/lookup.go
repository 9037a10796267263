package references

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers"
)

// To returns the references to an object, sorted. It leaves out references to another object of that name:
// with a UID other than that of o, or, if o has none, than the UIDs of the objects in the graph. See
// [Graph.ToOtherUIDs].
func (g *Graph) To(o Object) []Reference { return g.referencesTo(o, false) }

// ToOtherUIDs returns the references that [Graph.To] leaves out, sorted. Their target was deleted and
// recreated, or they were copied.
func (g *Graph) ToOtherUIDs(o Object) []Reference { return g.referencesTo(o, true) }

func (g *Graph) referencesTo(o Object, toOtherUIDs bool) []Reference {
	g.mu.Lock()
	defer g.mu.Unlock()
	var refs []Reference
	for _, n := range g.nodesOf(o) {
		for e := n.firstIncoming; e != nil; e = e.next {
			if e.refersToOtherUID(o.UID) == toOtherUIDs {
				refs = append(refs, e.reference())
			}
		}
	}
	return sortReferences(refs)
}

// From returns the references of an object, sorted.
func (g *Graph) From(o Object) []Reference {
	return g.referencesFrom(o, func(*edge) bool { return true })
}

// referencesFrom works like From with a filter.
func (g *Graph) referencesFrom(o Object, matches func(*edge) bool) []Reference {
	g.mu.Lock()
	defer g.mu.Unlock()
	var refs []Reference
	for _, n := range g.nodesOf(o) {
		for _, e := range n.outgoing {
			if matches(e) {
				refs = append(refs, e.reference())
			}
		}
	}
	return sortReferences(refs)
}

// Dangling returns all dangling references, sorted. The cost is linear in their number.
func (g *Graph) Dangling() []Reference {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.allDangling()
}

func (g *Graph) allDangling() []Reference {
	refs := make([]Reference, 0, len(g.mu.dangling))
	for e := range g.mu.dangling {
		refs = append(refs, e.reference())
	}
	return sortReferences(refs)
}

func sortReferences(refs []Reference) []Reference {
	slices.SortFunc(refs, Reference.compare)
	return refs
}

// nodesOf returns the nodes of an object. If no source has its type, there may be one for each name of the
// type.
func (g *Graph) nodesOf(o Object) (nodes []*node) {
	for _, typ := range g.mu.find(o) {
		if n := typ.nodes[typ.targetKey(o.Namespace, o.Name)]; n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// UnknownTypes returns the target types that never had a source, sorted: the group and either the plural name
// or the kind, as in the references.
func (g *Graph) UnknownTypes() []Type {
	g.mu.Lock()
	defer g.mu.Unlock()
	var types []Type
	for _, byName := range []map[typeName]*typeNode{g.mu.byKind, g.mu.byResource} {
		for _, typ := range byName {
			if !typ.isRegistered && len(typ.nodes) > 0 {
				types = append(types, typ.Type)
			}
		}
	}
	slices.SortFunc(types, func(a, b Type) int {
		return Object{Group: a.Group, Resource: a.Resource, Kind: a.Kind}.compare(Object{Group: b.Group,
			Resource: b.Resource, Kind: b.Kind})
	})
	return types
}

// Stats are the counts of a graph.
type Stats struct {
	// Informers is the number of informers, Synced the number that have synced.
	Informers, Synced int
	// References is the number of references of all objects, Dangling of the dangling ones.
	References, Dangling int
}

// Stats returns the current counts.
func (g *Graph) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{Informers: len(g.mu.sources), References: g.mu.edges, Dangling: len(g.mu.dangling)}
	for src := range g.mu.sources {
		if src.synced {
			s.Synced++
		}
	}
	return s
}

// WaitForSync waits until all sources have synced, including sources added during the wait. It returns the
// cause of ctx's end, or ErrClosed.
func (g *Graph) WaitForSync(ctx context.Context) error {
	for {
		g.mu.Lock()
		allSynced, closed, changed := true, g.mu.closed, g.mu.changed
		for m := range g.mu.sources {
			allSynced = allSynced && m.synced
		}
		g.mu.Unlock()
		switch {
		case closed:
			return ErrClosed
		case allSynced:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// UncheckedReferences counts references to a type that cannot be resolved, because the graph does not have
// all objects of the type, or because the references have no namespace. They do not dangle; their state is
// [Unknown] unless the graph has the target.
type UncheckedReferences struct {
	// Type is the target type. If it never had a source, only the group and one of the names are set.
	Type Type
	// References is the number of such references.
	References int
	// Reason is the reason.
	Reason string
}

// String describes the references and the reason in one line.
func (u UncheckedReferences) String() string {
	name := schema.GroupResource{Group: u.Type.Group, Resource: cmp.Or(u.Type.Kind, u.Type.Resource)}
	verb, s := "are", "s"
	if u.References == 1 {
		verb, s = "is", ""
	}
	return fmt.Sprintf("%d reference%s to %s %s not checked: %s", u.References, s, name, verb, u.Reason)
}

// Explain sets a function that returns why a type has no source, for example that the server does not serve
// it, or "" if unknown. It is called without locks. Optional.
func (g *Graph) Explain(explain func(Type) string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.explainType = explain
}

// Unchecked returns the target types with unknown objects, sorted. Programs that act on dangling references
// should check it, because references to unfollowed types are never dangling. The cost is linear in the
// number of types.
func (g *Graph) Unchecked() []UncheckedReferences {
	return g.unchecked(func(referrer) bool { return true })
}

// Unchecked works like [Graph.Unchecked] for the type's references with this name, or for all if it is empty.
func (t *TypeGraph) Unchecked(name string) []UncheckedReferences {
	return t.graph.unchecked(func(from referrer) bool {
		return (name == "" || from.name == name) && t.isOfType(from.typeNode.Type)
	})
}

func (g *Graph) unchecked(matches func(referrer) bool) []UncheckedReferences {
	g.mu.Lock()
	explain := g.mu.explainType
	visited := map[*typeNode]bool{} // a kind can have two names
	var out []UncheckedReferences
	for _, byName := range []map[typeName]*typeNode{g.mu.byKind, g.mu.byResource} {
		for _, typ := range byName {
			if !visited[typ] {
				out = append(out, typ.unchecked(matches)...)
			}
			visited[typ] = true
		}
	}
	g.mu.Unlock()
	for i, u := range out {
		if u.Reason == reasonNotFollowed && explain != nil {
			out[i].Reason = cmp.Or(explain(u.Type), u.Reason)
		}
	}
	slices.SortFunc(out, func(a, b UncheckedReferences) int {
		return cmp.Or(strings.Compare(a.Type.Group, b.Type.Group), strings.Compare(a.Type.Kind, b.Type.Kind),
			strings.Compare(a.Type.Resource, b.Type.Resource), strings.Compare(a.Reason, b.Reason))
	})
	return out
}

// unchecked counts the uncheckable references of some referrers to the kind by reason.
func (t *typeNode) unchecked(matches func(referrer) bool) (out []UncheckedReferences) {
	incompleteReason, counts := t.incompleteReason(), map[string]int{}
	for from, count := range t.referrers {
		switch {
		case !matches(from):
		case from.noNamespace:
			counts[reasonNoNamespace] += count
		case incompleteReason != "":
			counts[incompleteReason] += count
		}
	}
	for reason, n := range counts {
		out = append(out, UncheckedReferences{Type: t.Type, References: n, Reason: reason})
	}
	return out
}

// reasonNoNamespace is the reason for references without namespace to a namespaced type.
const reasonNoNamespace = "they name no namespace"

const reasonNotFollowed = "no informer follows them"

// incompleteReason returns why the existing objects are not all known, or "". Sources with some namespaces
// count like sources with all.
func (t *typeNode) incompleteReason() string {
	reason := reasonNotFollowed
	for src := range t.sources {
		switch {
		case !src.synced:
			reason = reasonNotRead
		case src.incompleteReason != "":
			reason = src.incompleteReason
		case src.HasSelector:
			reason = "only a selection of them is followed"
		case src.isSharded():
			reason = "only a shard of them is followed"
		default:
			return ""
		}
	}
	return reason
}

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
func (t *TypeGraph) Names() []string {
	t.graph.mu.Lock()
	defer t.graph.mu.Unlock()
	names := append([]string{Owners}, t.names...)
	for _, typ := range t.graph.mu.find(t.target) {
		for src := range typ.sources {
			names = append(names, src.extractor.names...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Dangling returns the objects with a dangling reference with this name, or with any if name is empty.
func (t *TypeGraph) Dangling(name string) []string {
	return t.keys(t.graph.Dangling(), name, func(r Reference) Object { return r.From })
}

// KeysReferringTo returns the objects that refer to o, by references with this name, or by any if name is
// empty. Like [Graph.To], it leaves out references to another object of that name.
func (t *TypeGraph) KeysReferringTo(o Object, name string) []string {
	return t.keys(t.graph.To(o), name, func(r Reference) Object { return r.From })
}

// CountRecreated counts the references that KeysReferringTo leaves out because they are to another object of
// that name.
func (t *TypeGraph) CountRecreated(o Object, name string) int {
	return len(t.keys(t.graph.ToOtherUIDs(o), name, func(r Reference) Object { return r.From }))
}

// KeysReferredBy returns the objects that o refers to, existing or not. It leaves out references with the UID
// of another object than the existing one.
func (t *TypeGraph) KeysReferredBy(o Object, name string) []string {
	return t.keys(t.graph.referencesFrom(o, func(e *edge) bool { return !e.refersToOtherUID("") }), name,
		func(r Reference) Object { return r.To })
}

// keys returns the sorted keys of the objects of the type. objectOf selects an end of each reference.
func (t *TypeGraph) keys(refs []Reference, name string, objectOf func(Reference) Object) []string {
	keys := []string{}
	for _, r := range refs {
		o := objectOf(r)
		key, ok := o.StoreKey()
		if ok && t.isOfType(Type{Group: o.Group, Resource: o.Resource, Kind: o.Kind}) &&
			(name == "" || r.Name == name) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (t *TypeGraph) isOfType(typ Type) bool {
	return typ.Group == t.target.Group && (typ.Kind != "" && typ.Kind == t.target.Kind || typ.Resource != "" &&
		typ.Resource == t.target.Resource)
}

// ExplainEmpty returns why KeysReferringTo or, with referredBy, KeysReferredBy can be empty for an existing
// object: an unknown type name, no source for the type, or a missing namespace. It returns "" otherwise.
func (t *TypeGraph) ExplainEmpty(o Object, referredBy bool) string {
	t.graph.mu.Lock()
	defer t.graph.mu.Unlock()
	name := strings.TrimSpace(Object{Group: o.Group, Resource: o.Resource, Kind: o.Kind}.String())
	found := t.graph.mu.find(o)
	followed := slices.ContainsFunc(found, func(k *typeNode) bool { return len(k.sources) > 0 })
	switch {
	case referredBy && !followed:
		return "no informer follows objects of type " + name + ", so their references are unknown"
	case !followed && !slices.ContainsFunc(found, func(typ *typeNode) bool { return len(typ.nodes) > 0 }):
		return "nothing refers to objects of type " + name +
			", and no informer follows them; a type is written as its kind or plural name with its group, as in Issuer.cert-manager.io"
	case o.Namespace == "" && slices.ContainsFunc(found, func(k *typeNode) bool {
		return k.isRegistered && k.Namespaced
	}):
		return "objects of type " + name + " have a namespace; write namespace/" + o.Name
	}
	return ""
}
