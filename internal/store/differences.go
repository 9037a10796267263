package store

// Differences are what has become of one content when another took its place, in the order of Replace. They
// never change.
type Differences struct {
	old   *Snapshot
	batch *Batch
	// went are the rows whose keys are not in the new content.
	went []*row
}

func newDifferences(old *Snapshot, b *Batch) Differences {
	d := Differences{old: old, batch: b}
	if d.nothingWent() {
		return d
	}
	for r := range old.rows.all {
		if findRow(&b.next.rows, r.key) == nil {
			d.went = append(d.went, r)
		}
	}
	return d
}

// Len is how many there are.
func (d Differences) Len() int { return len(d.went) + len(d.batch.rows) }

// At is difference n.
func (d Differences) At(n int) Change {
	if n < len(d.went) {
		r := d.went[n]
		return Change{Key: r.key, Old: r.keptItem()}
	}
	n -= len(d.went)
	h := d.batch.rows[n]
	change := Change{Key: h.entry.key, New: h.entry.keptItem()}
	if d.stayed(n) {
		change.Old = change.New
	} else if had := findHashed(&d.old.rows, h.hash, h.entry.key); had != nil {
		change.Old = had.keptItem()
	}
	return change
}

// nothingWent reports whether the new content is known to have all keys of the old one, so that it need not
// be searched for them.
func (d Differences) nothingWent() bool {
	b := d.batch
	return b.stays != nil && b.beside == d.old && b.found == d.old.rows.len
}

// stayed reports whether a row of the batch is known to be the one that was there before.
func (d Differences) stayed(n int) bool {
	b := d.batch
	return b.stays != nil && b.beside == d.old && b.stays[n]
}
