package references

// node is an existing object or a reference target.
type node struct {
	kind *typeNode
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
	uid     string
	sources int
}

// edgeID identifies a reference of one object.
type edgeID struct {
	name string
	to   Object // as written
}

type edge struct {
	edgeID
	from, node *node // node is the target
	// sourceCount is the number of sources whose object has the reference.
	sourceCount int
	dangling    bool
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
			n.uids[i].sources++
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
		if n.uids[i].sources--; n.uids[i].sources > 0 {
			return false
		}
		n.uids = append(n.uids[:i], n.uids[i+1:]...)
		return true
	}
	return false
}

// hasUID reports whether an object with the UID exists; "" means any UID.
func (n *node) hasUID(uid string) bool {
	for _, p := range n.uids {
		if uid == "" || p.uid == uid {
			return true
		}
	}
	return false
}

// removeIfUnused removes the node if it has no object and no references.
func (n *node) removeIfUnused() {
	if n.firstIncoming == nil && len(n.uids) == 0 && len(n.outgoing) == 0 && n.kind.nodes[n.objectKey] == n {
		delete(n.kind.nodes, n.objectKey)
	}
}

// object returns the name of the node's object.
func (n *node) object() Object {
	o := Object{Group: n.kind.Group, Resource: n.kind.Resource, Kind: n.kind.Kind,
		Namespace: n.namespace, Name: n.name}
	if len(n.uids) == 1 {
		o.UID = n.uids[0].uid
	}
	return o
}

func (e *edge) link(k *typeNode) {
	e.unlink()
	e.node = k.nodeAt(k.targetKey(e.to.Namespace, e.to.Name))
	e.referrer = referrer{e.from.kind, e.name, k.known && k.Namespaced && e.to.Namespace == ""}
	k.referrers[e.referrer]++
	if e.next = e.node.firstIncoming; e.next != nil {
		e.next.previous = e
	}
	e.node.firstIncoming = e
}

func (e *edge) unlink() {
	if e.node == nil {
		return
	}
	if e.previous != nil {
		e.previous.next = e.next
	} else {
		e.node.firstIncoming = e.next
	}
	if e.next != nil {
		e.next.previous = e.previous
	}
	old := e.node
	if old.kind.referrers[e.referrer]--; old.kind.referrers[e.referrer] == 0 {
		delete(old.kind.referrers, e.referrer)
	}
	e.node, e.next, e.previous = nil, nil, nil
	old.removeIfUnused()
}

// refersToOtherUID reports whether the reference has a UID different from uid or, if that is empty, from all
// objects at the node.
func (e *edge) refersToOtherUID(uid string) bool {
	if uid == "" {
		return e.to.UID != "" && len(e.node.uids) > 0 && !e.node.hasUID(e.to.UID)
	}
	return e.to.UID != "" && e.to.UID != uid
}

// state returns whether the reference resolves.
func (e *edge) state() State {
	switch {
	case e.node.hasUID(e.to.UID):
		return Resolved
	case e.referrer.noNamespace:
		return Unknown
	case e.node.kind.complete(e.node.namespace):
		return Dangling
	}
	return Unknown
}

// reference returns the exported form of the edge.
func (e *edge) reference() Reference {
	to := e.node.object()
	to.UID = e.to.UID
	return Reference{From: e.from.object(), Name: e.name, To: to, State: e.state()}
}
