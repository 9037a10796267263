package store

import "slices"

// patchShare is the least number of listed objects for each change of a patch. With more changes, a new trie
// takes less time and memory.
const patchShare = 16

// patched returns the content of a batch as changes of its base. A relist with one index then takes 25 bytes
// of memory for each object in place of 68 (TestRelistsNeedLittleMemory). It returns nil if the changes are
// many, or if a key is repeated.
func (b *Batch) patched() *Snapshot {
	removed := b.base.rows.len - b.foundInBase
	if max(removed, b.changed)*patchShare > len(b.rows) {
		return nil
	}
	hashes := make([]uint64, len(b.rows))
	for i, r := range b.rows {
		hashes[i] = r.hash
	}
	if slices.Sort(hashes); len(slices.Compact(hashes)) < len(b.rows) {
		return nil
	}
	next := b.base.copy()
	for i, r := range b.rows {
		if !b.unchanged[i] {
			next.put(b.base.rows.findHashed(r.hash, keyOf(r.entry)), r.entry)
		}
	}
	for r := range b.base.rows.all {
		if removed == 0 {
			break
		}
		if _, isListed := slices.BinarySearch(hashes, hashOf(keyOf(r))); !isListed {
			next.remove(r)
			removed--
		}
	}
	if removed != 0 { // a removed key has the hash of a listed one
		return nil
	}
	return next
}

// put adds a row in place of stored, which is nil if the key is new.
func (s *Snapshot) put(stored, r *storedRow) {
	if stored != nil {
		s.sizes.addRow(stored, -1)
		if values := stored.values(); values != "" && values == r.values() {
			r.shareValues(stored)
		}
	}
	s.rows = s.rows.with(r)
	s.reindex(stored, r)
	s.sizes.addRow(r, 1)
}

func (s *Snapshot) remove(stored *storedRow) {
	s.rows = s.rows.without(keyOf(stored))
	s.reindex(stored, nil)
	s.sizes.addRow(stored, -1)
}
