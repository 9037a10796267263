package store

// Differences are the changes made by a Replace, in its order. They are immutable.
type Differences struct {
	old   *Snapshot
	batch *Batch
	// removed are the rows of keys that are not in the new content.
	removed []*row
}

func newDifferences(old *Snapshot, b *Batch) Differences {
	d := Differences{old: old, batch: b}
	if d.noneRemoved() {
		return d
	}
	for r := range old.rows.all {
		if findRow(&b.next.rows, r.key) == nil {
			d.removed = append(d.removed, r)
		}
	}
	return d
}

// Len returns the number of differences.
func (d Differences) Len() int { return len(d.removed) + len(d.batch.rows) }

// At returns difference n.
func (d Differences) At(n int) Change {
	if n < len(d.removed) {
		r := d.removed[n]
		return Change{Key: r.key, Old: r.item()}
	}
	n -= len(d.removed)
	h := d.batch.rows[n]
	change := Change{Key: h.entry.key, New: h.entry.item()}
	if d.unchanged(n) {
		change.Old = change.New
	} else if had := findHashed(&d.old.rows, h.hash, h.entry.key); had != nil {
		change.Old = had.item()
	}
	return change
}

// noneRemoved reports whether the new content is known to have all keys of the old one.
func (d Differences) noneRemoved() bool {
	b := d.batch
	return b.unchanged != nil && b.base == d.old && b.found == d.old.rows.len
}

// unchanged reports whether row n of the batch is known to be a row of the old content.
func (d Differences) unchanged(n int) bool {
	b := d.batch
	return b.unchanged != nil && b.base == d.old && b.unchanged[n]
}
