package references

// node is an object that is there, or that is referred to.
type node struct {
	kind *kind
	place
	// present are the objects that members have here: of several members, or of one that has not heard yet of
	// a replacement, they may be different ones.
	present []presence
	// out are the references that the object makes.
	out map[edgeID]*edge
	// in is the first of the references to it.
	in *edge
}

// presence counts the members that have an object.
type presence struct {
	uid     string
	members int
}

// edgeID tells the references of one object apart.
type edgeID struct {
	name string
	to   Object // as it was written
}

// edge is a reference.
type edge struct {
	edgeID
	from, node *node // node is what it leads to
	// holders counts the members whose object makes it.
	holders  int
	dangling bool
	// by is where the kind of node counts the reference.
	by referrer
	// next and previous are the other references to the same node.
	next, previous *edge
}

// enter notes that a member has an object; leave that it has it no more. They are false where that changes
// nothing.
func (n *node) enter(uid string) bool {
	for i := range n.present {
		if n.present[i].uid == uid {
			n.present[i].members++
			return false
		}
	}
	n.present = append(n.present, presence{uid, 1})
	return true
}

func (n *node) leave(uid string) bool {
	for i := range n.present {
		if n.present[i].uid != uid {
			continue
		}
		if n.present[i].members--; n.present[i].members > 0 {
			return false
		}
		n.present = append(n.present[:i], n.present[i+1:]...)
		return true
	}
	return false
}

// has reports whether an object is there; "" stands for any UID.
func (n *node) has(uid string) bool {
	for _, p := range n.present {
		if uid == "" || p.uid == uid {
			return true
		}
	}
	return false
}

// drop forgets a node that nothing is known of.
func (n *node) drop() {
	if n.in == nil && len(n.present) == 0 && len(n.out) == 0 && n.kind.nodes[n.place] == n {
		delete(n.kind.nodes, n.place)
	}
}

// object names what is at the node.
func (n *node) object() Object {
	o := Object{Group: n.kind.Group, Resource: n.kind.Resource, Kind: n.kind.Kind,
		Namespace: n.namespace, Name: n.name}
	if len(n.present) == 1 {
		o.UID = n.present[0].uid
	}
	return o
}

// lead makes an edge lead to a kind.
func (e *edge) lead(k *kind) {
	e.cut()
	e.node = k.node(k.at(e.to.Namespace, e.to.Name))
	e.by = referrer{e.from.kind, e.name, k.known && k.Namespaced && e.to.Namespace == ""}
	k.referrers[e.by]++
	if e.next = e.node.in; e.next != nil {
		e.next.previous = e
	}
	e.node.in = e
}

// cut takes an edge off its node.
func (e *edge) cut() {
	if e.node == nil {
		return
	}
	if e.previous != nil {
		e.previous.next = e.next
	} else {
		e.node.in = e.next
	}
	if e.next != nil {
		e.next.previous = e.previous
	}
	old := e.node
	if old.kind.referrers[e.by]--; old.kind.referrers[e.by] == 0 {
		delete(old.kind.referrers, e.by)
	}
	e.node, e.next, e.previous = nil, nil, nil
	old.drop()
}

// meansOther reports whether the reference names the UID of another object than the one with this UID or, if
// that is empty, than the objects at the node.
func (e *edge) meansOther(uid string) bool {
	if uid == "" {
		return e.to.UID != "" && len(e.node.present) > 0 && !e.node.has(e.to.UID)
	}
	return e.to.UID != "" && e.to.UID != uid
}

// state says whether the reference leads to something.
func (e *edge) state() State {
	switch {
	case e.node.has(e.to.UID):
		return Resolved
	case e.by.unplaced:
		return Unknown
	case e.node.kind.complete(e.node.namespace):
		return Dangling
	}
	return Unknown
}

// reference is the edge as others see it.
func (e *edge) reference() Reference {
	to := e.node.object()
	to.UID = e.to.UID
	return Reference{From: e.from.object(), Name: e.name, To: to, State: e.state()}
}
