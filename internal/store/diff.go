package store

import "slices"

// Diff calls onChange for each key whose row differs from the row in before. old is nil for an added key,
// next is nil for a removed key. It skips shared nodes, so that the cost is proportional to the number of
// changes, unless a list replaced the whole content in between. It may report unchanged objects. It stops
// when onChange returns false.
//
// Keys may share the items' memory.
func (s *Snapshot) Diff(before *Snapshot, onChange func(key string, old, next Item) bool) {
	d := snapshotDiff{onChange: onChange}
	d.compareNodes(node{before.rows.inner, before.rows.leaf}, node{s.rows.inner, s.rows.leaf})
}

// node is an inner node, a leaf, or empty.
type node struct {
	inner *innerNode[storedRow]
	leaf  *leafNode[storedRow]
}

func (n node) appendTo(rows []*storedRow) []*storedRow {
	t := trie[storedRow]{inner: n.inner, leaf: n.leaf}
	return slices.AppendSeq(rows, t.all)
}

// snapshotDiff compares two tries of rows with the same hash function.
type snapshotDiff struct {
	onChange func(key string, old, next Item) bool
	// oldRows and newRows are scratch.
	oldRows, newRows []*storedRow
}

// compareNodes compares two nodes at the same position. It returns false if onChange did.
func (d *snapshotDiff) compareNodes(old, next node) bool {
	switch {
	case old == next:
		return true
	case old.inner != nil && next.inner != nil:
		return d.compareChildren(old.inner, next.inner)
	}
	d.oldRows, d.newRows = old.appendTo(d.oldRows[:0]), next.appendTo(d.newRows[:0])
	return d.compareRows()
}

// compareChildren compares inner nodes slot by slot. Slots that share a leaf are compared together.
func (d *snapshotDiff) compareChildren(oldNode, newNode *innerNode[storedRow]) bool {
	for k := 0; k < fanOut; {
		if oldNode.children[k] == newNode.children[k] {
			k++
			continue
		}
		old, _ := oldNode.child(k)
		next, _ := newNode.child(k)
		if old != nil && next != nil {
			if !d.compareChildren(old, next) {
				return false
			}
			k++
			continue
		}
		first, count := k, 1
		for _, n := range []*innerNode[storedRow]{oldNode, newNode} {
			if _, l := n.child(k); l != nil {
				if from, slots := n.sharedSlots(k); slots > count {
					first, count = from, slots
				}
			}
		}
		d.oldRows, d.newRows = appendSlots(oldNode, first, count, d.oldRows[:0]),
			appendSlots(newNode, first, count, d.newRows[:0])
		if !d.compareRows() {
			return false
		}
		k = first + count
	}
	return true
}

// appendSlots appends the rows of count slots starting with first.
func appendSlots(n *innerNode[storedRow], first, count int, rows []*storedRow) []*storedRow {
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

func (d *snapshotDiff) compareRows() bool {
	oldByKey := make(map[string]*storedRow, len(d.oldRows))
	for _, r := range d.oldRows {
		oldByKey[keyOf(r)] = r
	}
	for _, r := range d.newRows {
		old := oldByKey[keyOf(r)]
		delete(oldByKey, keyOf(r))
		switch {
		case old == r:
		case old == nil:
			if !d.onChange(keyOf(r), nil, r.item()) {
				return false
			}
		case !d.onChange(keyOf(r), old.item(), r.item()):
			return false
		}
	}
	for key, r := range oldByKey {
		if !d.onChange(key, r.item(), nil) {
			return false
		}
	}
	return true
}

// Differences are the changes made by a Replace, in its order. They are immutable.
type Differences struct {
	old   *Snapshot
	batch *Batch
	// removed are the rows of keys that are not in the new content.
	removed []*storedRow
}

func newDifferences(old *Snapshot, b *Batch) Differences {
	d := Differences{old: old, batch: b}
	if b.unchanged != nil && b.base == old && b.foundInBase == old.rows.len { // it has all keys of old
		return d
	}
	for r := range old.rows.all {
		if b.snapshot.rows.find(keyOf(r)) == nil {
			d.removed = append(d.removed, r)
		}
	}
	return d
}

// Len returns the number of differences.
func (d Differences) Len() int { return len(d.removed) + len(d.batch.rows) }

func (d Differences) At(n int) Change {
	if n < len(d.removed) {
		r := d.removed[n]
		return Change{Key: keyOf(r), Old: r.item()}
	}
	n -= len(d.removed)
	h := d.batch.rows[n]
	change := Change{Key: keyOf(h.entry)}
	if d.batch.arrivedItems != nil { // making an identity takes longer
		change.New = d.batch.arrivedItems[n]
	} else {
		change.New = h.entry.item()
	}
	if d.unchanged(n) {
		change.Old = change.New
	} else if oldRow := d.old.rows.findHashed(h.hash, change.Key); oldRow != nil {
		change.Old = oldRow.item()
	}
	return change
}

// unchanged reports whether row n of the batch is known to be a row of the old content.
func (d Differences) unchanged(n int) bool {
	b := d.batch
	return b.unchanged != nil && b.base == d.old && b.unchanged[n]
}
