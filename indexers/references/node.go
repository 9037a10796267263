package references

import "slices"

// node is an existing object or a reference target.
type node struct {
	typeNode *typeNode
	objectKey
	// uids are the objects that sources have for the key. They can have different UIDs if there are
	// several sources, or one has not yet received a replacement.
	uids []uidCount
	// outgoing are the references of the object.
	outgoing map[edgeID]*edge
	// firstIncoming is the first reference to the object.
	firstIncoming *edge
}

// uidCount is the number of sources that have an object.
type uidCount struct {
	uid         string
	sourceCount int
}

// edgeID identifies a reference of one object.
type edgeID struct {
	name string
	to   Object // as written
}

type edge struct {
	edgeID
	from, target *node
	// sourceCount is the number of sources whose object has the reference.
	sourceCount int
	isDangling  bool
	// referrer is the referrer under which the target's kind counts the reference.
	referrer referrer
	// next and previous link the references to the same node.
	next, previous *edge
}

// addHolder adds a source that has the object, removeHolder removes it. They return false if uids stays
// the same.
func (n *node) addHolder(uid string) bool {
	for i := range n.uids {
		if n.uids[i].uid == uid {
			n.uids[i].sourceCount++
			return false
		}
	}
	n.uids = append(n.uids, uidCount{uid, 1})
	return true
}

func (n *node) removeHolder(uid string) bool {
	for i := range n.uids {
		if n.uids[i].uid != uid {
			continue
		}
		if n.uids[i].sourceCount--; n.uids[i].sourceCount > 0 {
			return false
		}
		n.uids = slices.Delete(n.uids, i, i+1)
		return true
	}
	return false
}

// hasUID reports whether an object with the UID exists; "" means any UID.
func (n *node) hasUID(uid string) bool {
	return slices.ContainsFunc(n.uids, func(c uidCount) bool { return uid == "" || c.uid == uid })
}

// removeIfUnused removes the node if it has no object and no references.
func (n *node) removeIfUnused() {
	if n.firstIncoming == nil && len(n.uids) == 0 && len(n.outgoing) == 0 &&
		n.typeNode.nodes[n.objectKey] == n {
		delete(n.typeNode.nodes, n.objectKey)
	}
}

func (n *node) object() Object {
	o := Object{Group: n.typeNode.Group, Resource: n.typeNode.Resource, Kind: n.typeNode.Kind,
		Namespace: n.namespace, Name: n.name}
	if len(n.uids) == 1 {
		o.UID = n.uids[0].uid
	}
	return o
}

func (e *edge) link(typ *typeNode) {
	e.unlink()
	e.target = typ.nodeAt(typ.targetKey(e.to.Namespace, e.to.Name))
	e.referrer = referrer{e.from.typeNode, e.name, typ.isRegistered && typ.Namespaced && e.to.Namespace == ""}
	typ.referrers[e.referrer]++
	if e.next = e.target.firstIncoming; e.next != nil {
		e.next.previous = e
	}
	e.target.firstIncoming = e
}

func (e *edge) unlink() {
	if e.target == nil {
		return
	}
	if e.previous != nil {
		e.previous.next = e.next
	} else {
		e.target.firstIncoming = e.next
	}
	if e.next != nil {
		e.next.previous = e.previous
	}
	old := e.target
	if old.typeNode.referrers[e.referrer]--; old.typeNode.referrers[e.referrer] == 0 {
		delete(old.typeNode.referrers, e.referrer)
	}
	e.target, e.next, e.previous = nil, nil, nil
	old.removeIfUnused()
}

// refersToOtherUID reports whether the reference has a UID different from uid or, if that is empty, from all
// objects at the node.
func (e *edge) refersToOtherUID(uid string) bool {
	if uid == "" {
		return e.to.UID != "" && len(e.target.uids) > 0 && !e.target.hasUID(e.to.UID)
	}
	return e.to.UID != "" && e.to.UID != uid
}

// state returns whether the reference resolves.
func (e *edge) state() State {
	switch {
	case e.target.hasUID(e.to.UID):
		return Resolved
	case e.referrer.noNamespace:
		return Unknown
	case e.target.typeNode.isComplete(e.target.namespace):
		return Dangling
	}
	return Unknown
}

// reference returns the exported form of the edge.
func (e *edge) reference() Reference {
	to := e.target.object()
	to.UID = e.to.UID
	return Reference{From: e.from.object(), Name: e.name, To: to, State: e.state()}
}

// typeNode is the type of objects or of reference targets.
type typeNode struct {
	Type
	// isRegistered is set when a source has provided the whole Type; before, only Resource or Kind is set.
	isRegistered bool
	sources      map[*source]struct{}
	nodes        map[objectKey]*node
	// referrers counts the references to objects of the type.
	referrers map[referrer]int
}

// referrer is a type with a reference, by its name.
type referrer struct {
	typeNode *typeNode
	name     string
	// noNamespace is set for references without namespace to a namespaced type: the namespace of the target
	// is unknown.
	noNamespace bool
}

func newTypeNode(t Type) *typeNode {
	return &typeNode{Type: t, nodes: map[objectKey]*node{}, sources: map[*source]struct{}{},
		referrers: map[referrer]int{}}
}

type objectKey struct{ namespace, name string }

// typeName is a group with a plural name or a kind.
type typeName struct{ group, name string }

// typeNodes finds types by either of their names.
type typeNodes struct {
	byResource, byKind map[typeName]*typeNode
}

// find returns the possible types of an object. It returns two if the kind and the resource are not known to
// be names of the same type.
func (t typeNodes) find(o Object) (types []*typeNode) {
	byKind, byResource := t.byKind[typeName{o.Group, o.Kind}], t.byResource[typeName{o.Group, o.Resource}]
	if byKind != nil {
		types = append(types, byKind)
	}
	if byResource != nil && byResource != byKind {
		types = append(types, byResource)
	}
	return types
}

// forTarget returns the type of a reference target and creates it if necessary.
func (t typeNodes) forTarget(o Object) *typeNode {
	if found := t.find(o); len(found) > 0 {
		return found[0]
	}
	typ := newTypeNode(Type{Group: o.Group, Resource: o.Resource, Kind: o.Kind})
	if o.Kind != "" {
		t.byKind[typeName{o.Group, o.Kind}] = typ
	} else {
		t.byResource[typeName{o.Group, o.Resource}] = typ
	}
	return typ
}

// register returns the node of a type that is now known. Incomplete nodes with one of its names are merged
// into it. It returns all references to the type, because their state can change.
func (t typeNodes) register(typ Type) (k *typeNode, rechecked []*edge) {
	byKind, byResource := t.byKind[typeName{typ.Group, typ.Kind}], t.byResource[typeName{typ.Group,
		typ.Resource}]
	if byResource != nil && byResource.isRegistered && byResource.Type == typ {
		return byResource, nil
	}
	k = byResource
	if k == nil || !k.isRegistered {
		k = newTypeNode(typ)
	}
	k.Type, k.isRegistered = typ, true
	for _, old := range []*typeNode{byKind, byResource} {
		if old != nil && (old == k || !old.isRegistered) {
			rechecked = append(rechecked, old.incoming()...)
		}
	}
	t.byResource[typeName{typ.Group, typ.Resource}] = k
	if byKind == nil || !byKind.isRegistered { // if two types have the same kind, the first one has the name
		t.byKind[typeName{typ.Group, typ.Kind}] = k
	}
	for _, e := range rechecked {
		e.link(k)
	}
	return k, rechecked
}

func (t *typeNode) incoming() []*edge {
	var edges []*edge
	for _, n := range t.nodes {
		for e := n.firstIncoming; e != nil; e = e.next {
			edges = append(edges, e)
		}
	}
	return edges
}

// targetKey returns the key of a reference target. The namespace is ignored for cluster-scoped types.
func (t *typeNode) targetKey(namespace, name string) objectKey {
	if t.isRegistered && !t.Namespaced {
		namespace = ""
	}
	return objectKey{namespace, name}
}

// nodeAt returns the node of a key and creates it if necessary.
func (t *typeNode) nodeAt(key objectKey) *node {
	n := t.nodes[key]
	if n == nil {
		n = &node{typeNode: t, objectKey: key}
		t.nodes[key] = n
	}
	return n
}

// isComplete reports whether a missing object of a namespace is known not to exist.
func (t *typeNode) isComplete(namespace string) bool {
	for src := range t.sources {
		if src.synced && src.isComplete(namespace) {
			return true
		}
	}
	return false
}
