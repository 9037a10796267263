package references

// typeNode is the type of objects or of reference targets.
type typeNode struct {
	Type
	// known is set when a source has provided the whole Type; before, only Resource or Kind is set.
	known   bool
	sources map[*source]struct{}
	nodes   map[objectKey]*node
	// referrers counts the references to objects of the type.
	referrers map[referrer]int
}

// referrer is a type with a reference, by its name.
type referrer struct {
	kind *typeNode
	name string
	// noNamespace is set for references without namespace to a namespaced type: the namespace of the target
	// is unknown.
	noNamespace bool
}

func newTypeNode(t Type) *typeNode {
	return &typeNode{Type: t, nodes: map[objectKey]*node{}, sources: map[*source]struct{}{},
		referrers: map[referrer]int{}}
}

// objectKey is the key of an object within its type.
type objectKey struct{ namespace, name string }

// typeName is a group with a plural name or a kind.
type typeName struct{ group, name string }

// typeNodes finds types by either of their names.
type typeNodes struct {
	byResource, byKind map[typeName]*typeNode
}

func newTypeNodes() typeNodes {
	return typeNodes{map[typeName]*typeNode{}, map[typeName]*typeNode{}}
}

// find returns the possible types of an object. It returns two if the kind and the resource are not known to
// be names of the same type.
func (ks typeNodes) find(o Object) (found []*typeNode) {
	byKind, byResource := ks.byKind[typeName{o.Group, o.Kind}], ks.byResource[typeName{o.Group, o.Resource}]
	if byKind != nil {
		found = append(found, byKind)
	}
	if byResource != nil && byResource != byKind {
		found = append(found, byResource)
	}
	return found
}

// forTarget returns the type of a reference target and creates it if necessary.
func (ks typeNodes) forTarget(o Object) *typeNode {
	if found := ks.find(o); len(found) > 0 {
		return found[0]
	}
	k := newTypeNode(Type{Group: o.Group, Resource: o.Resource, Kind: o.Kind})
	if o.Kind != "" {
		ks.byKind[typeName{o.Group, o.Kind}] = k
	} else {
		ks.byResource[typeName{o.Group, o.Resource}] = k
	}
	return k
}

// register returns the node of a type that is now known. Incomplete nodes with one of its names are merged
// into it. It returns all references to the type, because their state can change.
func (ks typeNodes) register(t Type) (k *typeNode, rechecked []*edge) {
	byKind, byResource := ks.byKind[typeName{t.Group, t.Kind}], ks.byResource[typeName{t.Group, t.Resource}]
	if byResource != nil && byResource.known && byResource.Type == t {
		return byResource, nil
	}
	k = byResource
	if k == nil || !k.known {
		k = newTypeNode(t)
	}
	k.Type, k.known = t, true
	for _, old := range []*typeNode{byKind, byResource} {
		if old != nil && (old == k || !old.known) {
			rechecked = append(rechecked, old.incoming()...)
		}
	}
	ks.byResource[typeName{t.Group, t.Resource}] = k
	if byKind == nil || !byKind.known { // if two types have the same kind, the first one has the name
		ks.byKind[typeName{t.Group, t.Kind}] = k
	}
	for _, e := range rechecked {
		e.link(k)
	}
	return k, rechecked
}

// incoming returns all references to objects of the type.
func (k *typeNode) incoming() []*edge {
	var edges []*edge
	for _, n := range k.nodes {
		for e := n.firstIncoming; e != nil; e = e.next {
			edges = append(edges, e)
		}
	}
	return edges
}

// targetKey returns the key of a reference target. The namespace is ignored for cluster-scoped types.
func (k *typeNode) targetKey(namespace, name string) objectKey {
	if k.known && !k.Namespaced {
		namespace = ""
	}
	return objectKey{namespace, name}
}

// nodeAt returns the node of a key and creates it if necessary.
func (k *typeNode) nodeAt(at objectKey) *node {
	n := k.nodes[at]
	if n == nil {
		n = &node{kind: k, objectKey: at}
		k.nodes[at] = n
	}
	return n
}

// complete reports whether a missing object of a namespace is known not to exist.
func (k *typeNode) complete(namespace string) bool {
	for m := range k.sources {
		if m.synced && m.isComplete(namespace) {
			return true
		}
	}
	return false
}
