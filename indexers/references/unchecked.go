package references

import (
	"cmp"
	"slices"
	"strings"
)

// Unchecked is a type that is referred to without its being known which of its objects there are. Such references do not
// dangle, and are [Unknown] unless their object has been seen.
type Unchecked struct {
	// Type is the type, as far as it is known: of one that nobody has followed, the group and one of the names.
	Type Type
	// References counts the references to its objects.
	References int
	// Why says why in a few words.
	Why string
}

// String says it in one line.
func (u Unchecked) String() string {
	name := cmp.Or(u.Type.Kind, u.Type.Resource)
	if u.Type.Group != "" {
		name += "." + u.Type.Group
	}
	return "references to " + name + " are not checked: " + u.Why
}

// Explain sets what says why nobody follows a type that is referred to, such as that the server has no such type. It
// returns "" where it does not know, and is called without a lock. Nil stands for nobody who knows.
func (g *Graph) Explain(why func(Type) string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.why = why
}

// Unchecked gives the types that are referred to and not followed, or not as a whole, sorted. A program that acts on what
// dangles looks here, too: an empty list of dangling references may mean that nobody looks. It costs as much as there are
// types.
func (g *Graph) Unchecked() []Unchecked {
	return g.unchecked(func(referrer) bool { return true })
}

// Unchecked is that of the graph for the references of one name that the objects make, or for all if it is empty.
func (v *View) Unchecked(name string) []Unchecked {
	return v.graph.unchecked(func(by referrer) bool {
		return (name == "" || by.name == name) && v.is(by.kind.Type)
	})
}

func (g *Graph) unchecked(of func(referrer) bool) []Unchecked {
	g.mu.Lock()
	why := g.mu.why
	all := map[*kind]Unchecked{} // a kind may have two names
	for _, byName := range []map[typeName]*kind{g.mu.byKind, g.mu.byResource} {
		for _, k := range byName {
			lack, n := k.lack(), k.referred(of)
			if lack != "" && n > 0 {
				all[k] = Unchecked{Type: k.Type, References: n, Why: lack}
			}
		}
	}
	g.mu.Unlock()
	var out []Unchecked
	for _, u := range all {
		if u.Why == unfollowed && why != nil {
			u.Why = cmp.Or(why(u.Type), u.Why)
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Unchecked) int {
		return cmp.Or(strings.Compare(a.Type.Group, b.Type.Group), strings.Compare(a.Type.Kind, b.Type.Kind), strings.Compare(a.Type.Resource, b.Type.Resource))
	})
	return out
}

// unfollowed is why nothing is known of a type without members.
const unfollowed = "nobody follows them"

// lack says why it is not known which objects there are; empty where it is. Members with some namespaces count as if they
// had all.
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
