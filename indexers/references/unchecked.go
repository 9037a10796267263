package references

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Unchecked counts references to a type that cannot be resolved, because the graph does not know which
// objects the type has, or because the references name no namespace. They do not dangle; their state is
// [Unknown] unless the graph has the object.
type Unchecked struct {
	// Type is the type, as far as it is known: of one that nobody has followed, the group and one of the
	// names.
	Type Type
	// References is the number of such references.
	References int
	// Why says why in a few words.
	Why string
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
	return fmt.Sprintf("%d reference%s to %s %s not checked: %s", u.References, s, name, verb, u.Why)
}

// Explain sets what says why nobody follows a type that is referred to, such as that the server has no such
// type. It returns "" where it does not know, and is called without a lock. Nil stands for nobody who knows.
func (g *Graph) Explain(why func(Type) string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.why = why
}

// Unchecked gives the types that are referred to and not followed, or not as a whole, sorted. A program that
// acts on what dangles looks here, too: an empty list of dangling references may mean that nobody looks. It
// costs as much as there are types.
func (g *Graph) Unchecked() []Unchecked {
	return g.unchecked(func(referrer) bool { return true })
}

// Unchecked is that of the graph for the references of one name that the objects make, or for all if it is
// empty.
func (v *View) Unchecked(name string) []Unchecked {
	return v.graph.unchecked(func(by referrer) bool {
		return (name == "" || by.name == name) && v.is(by.kind.Type)
	})
}

func (g *Graph) unchecked(of func(referrer) bool) []Unchecked {
	g.mu.Lock()
	why := g.mu.why
	seen := map[*kind]bool{} // a kind may have two names
	var out []Unchecked
	for _, byName := range []map[typeName]*kind{g.mu.byKind, g.mu.byResource} {
		for _, k := range byName {
			if !seen[k] {
				out = append(out, k.unchecked(of)...)
			}
			seen[k] = true
		}
	}
	g.mu.Unlock()
	for i, u := range out {
		if u.Why == unfollowed && why != nil {
			out[i].Why = cmp.Or(why(u.Type), u.Why)
		}
	}
	slices.SortFunc(out, func(a, b Unchecked) int {
		return cmp.Or(strings.Compare(a.Type.Group, b.Type.Group), strings.Compare(a.Type.Kind, b.Type.Kind),
			strings.Compare(a.Type.Resource, b.Type.Resource), strings.Compare(a.Why, b.Why))
	})
	return out
}

// unchecked counts the references of some referrers to the kind that cannot be checked, by reason.
func (k *kind) unchecked(of func(referrer) bool) (out []Unchecked) {
	lack := k.lack()
	if n := k.referred(func(by referrer) bool { return of(by) && !by.unplaced }); n > 0 && lack != "" {
		out = append(out, Unchecked{Type: k.Type, References: n, Why: lack})
	}
	if n := k.referred(func(by referrer) bool { return of(by) && by.unplaced }); n > 0 {
		out = append(out, Unchecked{Type: k.Type, References: n, Why: unplaced})
	}
	return out
}

// unplaced is the reason for references without a namespace to a type that has namespaces.
const unplaced = "they name no namespace"

// unfollowed is why nothing is known of a type without members.
const unfollowed = "nobody follows them"

// lack says why it is not known which objects there are; empty where it is. Members with some namespaces
// count as if they had all.
func (k *kind) lack() string {
	why := unfollowed
	for m := range k.members {
		switch {
		case !m.synced:
			why = notRead
		case m.lack != "":
			why = m.lack
		case m.Selected:
			why = "only a selection of them is followed"
		case m.isSharded():
			why = "only a shard of them is followed"
		default:
			return ""
		}
	}
	return why
}

// referred counts the references to the objects.
func (k *kind) referred(of func(referrer) bool) (n int) {
	for by, some := range k.referrers {
		if of(by) {
			n += some
		}
	}
	return n
}
