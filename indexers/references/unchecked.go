package references

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Unchecked counts references to a type that cannot be resolved, because the graph does not have all objects
// of the type, or because the references have no namespace. They do not dangle; their state is [Unknown]
// unless the graph has the target.
type Unchecked struct {
	// Type is the target type. If it never had a source, only the group and one of the names are set.
	Type Type
	// References is the number of such references.
	References int
	// Reason is the reason.
	Reason string
}

// String describes the references and the reason in one line.
func (u Unchecked) String() string {
	name := cmp.Or(u.Type.Kind, u.Type.Resource)
	if u.Type.Group != "" {
		name += "." + u.Type.Group
	}
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
	g.mu.explain = explain
}

// Unchecked returns the target types with unknown objects, sorted. Programs that act on dangling references
// should check it, because references to unfollowed types are never dangling. The cost is linear in the
// number of types.
func (g *Graph) Unchecked() []Unchecked {
	return g.unchecked(func(referrer) bool { return true })
}

// Unchecked is [Graph.Unchecked] for the references of the type's objects with this name, or with any if name
// is empty.
func (v *TypeGraph) Unchecked(name string) []Unchecked {
	return v.graph.unchecked(func(by referrer) bool {
		return (name == "" || by.name == name) && v.isOfType(by.kind.Type)
	})
}

func (g *Graph) unchecked(matches func(referrer) bool) []Unchecked {
	g.mu.Lock()
	explain := g.mu.explain
	visited := map[*typeNode]bool{} // a kind can have two names
	var out []Unchecked
	for _, byName := range []map[typeName]*typeNode{g.mu.byKind, g.mu.byResource} {
		for _, k := range byName {
			if !visited[k] {
				out = append(out, k.unchecked(matches)...)
			}
			visited[k] = true
		}
	}
	g.mu.Unlock()
	for i, u := range out {
		if u.Reason == reasonNotFollowed && explain != nil {
			out[i].Reason = cmp.Or(explain(u.Type), u.Reason)
		}
	}
	slices.SortFunc(out, func(a, b Unchecked) int {
		return cmp.Or(strings.Compare(a.Type.Group, b.Type.Group), strings.Compare(a.Type.Kind, b.Type.Kind),
			strings.Compare(a.Type.Resource, b.Type.Resource), strings.Compare(a.Reason, b.Reason))
	})
	return out
}

// unchecked counts the uncheckable references of some referrers to the kind by reason.
func (k *typeNode) unchecked(matches func(referrer) bool) (out []Unchecked) {
	reason := k.incompleteReason()
	if n := k.countReferences(func(by referrer) bool { return matches(by) && !by.noNamespace }); n > 0 &&
		reason != "" {
		out = append(out, Unchecked{Type: k.Type, References: n, Reason: reason})
	}
	if n := k.countReferences(func(by referrer) bool { return matches(by) && by.noNamespace }); n > 0 {
		out = append(out, Unchecked{Type: k.Type, References: n, Reason: reasonNoNamespace})
	}
	return out
}

// reasonNoNamespace is the reason for references without namespace to a namespaced type.
const reasonNoNamespace = "they name no namespace"

const reasonNotFollowed = "no informer follows them"

// incompleteReason returns why the existing objects are not all known, or "". Sources with some namespaces
// count like sources with all.
func (k *typeNode) incompleteReason() string {
	reason := reasonNotFollowed
	for m := range k.sources {
		switch {
		case !m.synced:
			reason = reasonNotRead
		case m.incompleteReason != "":
			reason = m.incompleteReason
		case m.HasSelector:
			reason = "only a selection of them is followed"
		case m.isSharded():
			reason = "only a shard of them is followed"
		default:
			return ""
		}
	}
	return reason
}

func (k *typeNode) countReferences(matches func(referrer) bool) (n int) {
	for by, matching := range k.referrers {
		if matches(by) {
			n += matching
		}
	}
	return n
}
