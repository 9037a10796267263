package references

// kind is a type that objects are of, or are said to be of.
type kind struct {
	Type
	// known is set once a member has told the whole Type; before, only Resource or Kind is set.
	known   bool
	members map[*member]struct{}
	nodes   map[place]*node
	// referrers counts the references to the objects by who makes them.
	referrers map[referrer]int
}

// referrer is a type whose objects make references of one name.
type referrer struct {
	kind *kind
	name string
	// unplaced is set for references without a namespace to a type that has namespaces: they may lead to an
	// object of any.
	unplaced bool
}

func newKind(t Type) *kind {
	return &kind{Type: t, nodes: map[place]*node{}, members: map[*member]struct{}{},
		referrers: map[referrer]int{}}
}

// place is where an object is within its kind.
type place struct{ namespace, name string }

// typeName is the group with a plural name or a kind.
type typeName struct{ group, name string }

// kinds finds types by either of their names.
type kinds struct {
	byResource, byKind map[typeName]*kind
}

func newKinds() kinds {
	return kinds{map[typeName]*kind{}, map[typeName]*kind{}}
}

// find returns the kinds that an object may be of: more than one only where nobody has said that they are the
// same.
func (ks kinds) find(o Object) (found []*kind) {
	byKind, byResource := ks.byKind[typeName{o.Group, o.Kind}], ks.byResource[typeName{o.Group, o.Resource}]
	if byKind != nil {
		found = append(found, byKind)
	}
	if byResource != nil && byResource != byKind {
		found = append(found, byResource)
	}
	return found
}

// of returns the kind of an object that is referred to, which is made where nobody has heard of it.
func (ks kinds) of(o Object) *kind {
	if found := ks.find(o); len(found) > 0 {
		return found[0]
	}
	k := newKind(Type{Group: o.Group, Resource: o.Resource, Kind: o.Kind})
	if o.Kind != "" {
		ks.byKind[typeName{o.Group, o.Kind}] = k
	} else {
		ks.byResource[typeName{o.Group, o.Resource}] = k
	}
	return k
}

// learn returns the kind of a type that is known now. What was said of it by one of its names alone becomes a
// part of it, and so does what was said under another scope; all references to it are returned, because their
// state may change.
func (ks kinds) learn(t Type) (k *kind, moved []*edge) {
	byKind, byResource := ks.byKind[typeName{t.Group, t.Kind}], ks.byResource[typeName{t.Group, t.Resource}]
	if byResource != nil && byResource.known && byResource.Type == t {
		return byResource, nil
	}
	k = byResource
	if k == nil || !k.known {
		k = newKind(t)
	}
	k.Type, k.known = t, true
	for _, old := range []*kind{byKind, byResource} {
		if old != nil && (old == k || !old.known) {
			moved = append(moved, old.incoming()...)
		}
	}
	ks.byResource[typeName{t.Group, t.Resource}] = k
	if byKind == nil || !byKind.known { // of two types of one kind the first has its name
		ks.byKind[typeName{t.Group, t.Kind}] = k
	}
	for _, e := range moved {
		e.lead(k)
	}
	return k, moved
}

// incoming gives all references to objects of the kind.
func (k *kind) incoming() []*edge {
	var all []*edge
	for _, n := range k.nodes {
		for e := n.in; e != nil; e = e.next {
			all = append(all, e)
		}
	}
	return all
}

// at is where references to a namespace and a name lead: what is outside of any namespace is found whatever
// namespace is asked for.
func (k *kind) at(namespace, name string) place {
	if k.known && !k.Namespaced {
		namespace = ""
	}
	return place{namespace, name}
}

// node returns the node of a place, which is made where there is none.
func (k *kind) node(at place) *node {
	n := k.nodes[at]
	if n == nil {
		n = &node{kind: k, place: at}
		k.nodes[at] = n
	}
	return n
}

// complete reports whether what is not there is known not to be there.
func (k *kind) complete(namespace string) bool {
	for m := range k.members {
		if m.synced && m.covers(namespace) {
			return true
		}
	}
	return false
}
