package store

// Since calls changed for each key whose row is another one than in before: old is nil for a key that came,
// next for one that went. What the two have in common is not looked at, so that the cost is that of the
// changes, unless a list came in between, which makes everything anew. An object may be told of that has not
// changed. It ends when changed returns false.
//
// Keys may be parts of the items.
func (s *Snapshot) Since(before *Snapshot, changed func(key string, old, next Item) bool) {
	d := differing{changed: changed}
	d.nodes(node{before.rows.inner, before.rows.leaf}, node{s.rows.inner, s.rows.leaf})
}

// node is an inner node, a leaf, or nothing.
type node struct {
	inner *inner[row]
	leaf  *leaf[row]
}

func (n node) appendTo(rows []*row) []*row {
	take := func(r *row) bool {
		rows = append(rows, r)
		return true
	}
	switch {
	case n.inner != nil:
		n.inner.all(take)
	case n.leaf != nil:
		n.leaf.all(take)
	}
	return rows
}

// differing compares two tries of rows, whose hashes are the same function of their keys.
type differing struct {
	changed func(key string, old, next Item) bool
	// was and is are used again for each comparison.
	was, is []*row
}

// nodes compares two nodes in the same place. It returns false when nobody wants to know more.
func (d *differing) nodes(was, is node) bool {
	switch {
	case was == is:
		return true
	case was.inner != nil && is.inner != nil:
		return d.children(was.inner, is.inner)
	}
	d.was, d.is = was.appendTo(d.was[:0]), is.appendTo(d.is[:0])
	return d.rows()
}

// children compares inner nodes slot by slot. Where a leaf has several slots, they are compared at once, with
// whatever the other node has there.
func (d *differing) children(was, is *inner[row]) bool {
	for k := 0; k < fan; {
		if was.children[k] == is.children[k] {
			k++
			continue
		}
		old, _ := was.child(k)
		next, _ := is.child(k)
		if old != nil && next != nil {
			if !d.children(old, next) {
				return false
			}
			k++
			continue
		}
		first, count := k, 1
		for _, n := range []*inner[row]{was, is} {
			if _, l := n.child(k); l != nil {
				if from, slots := n.sharing(k); slots > count {
					first, count = from, slots
				}
			}
		}
		d.was, d.is = below(was, first, count, d.was[:0]), below(is, first, count, d.is[:0])
		if !d.rows() {
			return false
		}
		k = first + count
	}
	return true
}

// below appends the rows of count slots from first on.
func below(n *inner[row], first, count int, rows []*row) []*row {
	for k := first; k < first+count; {
		child, l := n.child(k)
		rows = node{child, l}.appendTo(rows)
		if k++; l != nil {
			for k < first+count && n.children[k] == n.children[k-1] {
				k++
			}
		}
	}
	return rows
}

// rows compares the rows that were there with those that are.
func (d *differing) rows() bool {
	had := make(map[string]*row, len(d.was))
	for _, r := range d.was {
		had[r.key] = r
	}
	for _, r := range d.is {
		old := had[r.key]
		delete(had, r.key)
		switch {
		case old == r:
		case old == nil:
			if !d.changed(r.key, nil, r.keptItem()) {
				return false
			}
		case !d.changed(r.key, old.keptItem(), r.keptItem()):
			return false
		}
	}
	for key, r := range had {
		if !d.changed(key, r.keptItem(), nil) {
			return false
		}
	}
	return true
}
