package store

import (
	"cmp"
	"math/bits"
)

// KeySet is a set of keys of stored or prepared objects. It takes about ten bytes for each key, a quarter of
// a map's, because it refers to their rows. It is not safe for concurrent use.
type KeySet struct {
	// rows is a hash table with linear probing. Slots are nil if they are free.
	rows  []*storedRow
	count int
}

// NewKeySet returns a set with space for a number of keys.
func NewKeySet(capacity int) *KeySet { return &KeySet{rows: make([]*storedRow, slotsFor(capacity))} }

// slotsFor returns the number of slots of which keys fill four fifths.
func slotsFor(keys int) int { return max(8, keys+keys/4) }

func (k *KeySet) Len() int { return k.count }

// Add adds the key of a prepared object, and reports whether it was new.
func (k *KeySet) Add(p PreparedItem) bool { return k.add(p.row) }

// AddStored works like Add for an object that was stored: the set does not keep the prepared row, if the
// snapshot has another with the same identity.
func (k *KeySet) AddStored(s *Snapshot, p PreparedItem) bool {
	return k.add(cmp.Or(s.rows.find(p.Key), p.row))
}

func (k *KeySet) Has(key string) bool { return k.rows[k.slot(key)] != nil }

func (k *KeySet) add(r *storedRow) bool {
	if slotsFor(k.count+1) > len(k.rows) {
		grown := NewKeySet(2 * (k.count + 1))
		for _, before := range k.rows {
			if before != nil {
				grown.rows[grown.slot(keyOf(before))] = before
			}
		}
		k.rows = grown.rows
	}
	at := k.slot(keyOf(r))
	if k.rows[at] != nil {
		return false
	}
	k.rows[at] = r
	k.count++
	return true
}

// Delete deletes a key, if the set has it. Later keys of its chain move up.
func (k *KeySet) Delete(key string) {
	at := k.slot(key)
	if k.rows[at] == nil {
		return
	}
	k.count--
	k.rows[at] = nil
	for at = k.after(at); k.rows[at] != nil; at = k.after(at) {
		r := k.rows[at]
		k.rows[at] = nil
		k.rows[k.slot(keyOf(r))] = r
	}
}

// slot returns the slot of a key, or the free one for it.
func (k *KeySet) slot(key string) int {
	at, _ := bits.Mul64(hashOf(key), uint64(len(k.rows)))
	i := int(at)
	for k.rows[i] != nil && keyOf(k.rows[i]) != key {
		i = k.after(i)
	}
	return i
}

func (k *KeySet) after(slot int) int { return (slot + 1) % len(k.rows) }
