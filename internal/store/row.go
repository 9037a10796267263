package store

import (
	"encoding/binary"
	"hash/maphash"
)

// row is one stored object. Readers see key and item, which never change; a new version is a new row.
type row struct {
	key  string
	item Item
	// values are the object's index values, so that they need not be computed again to take it out. Only those
	// who hold Store.write may touch them.
	values values
}

// values are the index values of one object, packed: for each index that has any its id, their number, and for
// each its length and bytes. A string takes a quarter of the memory of slices, and objects can share it.
type values string

// appendValues appends the values of one index.
func appendValues(to []byte, id int, list []string) []byte {
	if len(list) == 0 {
		return to
	}
	to = binary.AppendUvarint(to, uint64(id))
	to = binary.AppendUvarint(to, uint64(len(list)))
	for _, v := range list {
		to = binary.AppendUvarint(to, uint64(len(v)))
		to = append(to, v...)
	}
	return to
}

// of calls yield for each value of one index until it returns false.
func (vs values) of(id int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		rest := string(vs)
		for rest != "" {
			section, count := cut(&rest), cut(&rest)
			for range count {
				n := cut(&rest)
				value := rest[:n]
				rest = rest[n:]
				if section == id && !yield(value) {
					return
				}
			}
			if section == id {
				return
			}
		}
	}
}

// has reports whether value is one of the index's values.
func (vs values) has(id int, value string) bool {
	for v := range vs.of(id) {
		if v == value {
			return true
		}
	}
	return false
}

// cut takes a number off the front.
func cut(text *string) int {
	number, shift := 0, 0
	for i := 0; ; i++ {
		b := (*text)[i]
		number |= int(b&0x7f) << shift
		if b < 0x80 {
			*text = (*text)[i+1:]
			return number
		}
		shift += 7
	}
}

// seed makes hashes differ from process to process, so that nobody can choose keys that collide.
var seed = maphash.MakeSeed()

func hashOf(text string) uint64 { return maphash.String(seed, text) }

func hashRow(r *row) uint64 { return hashOf(r.key) }

// withRow returns rows with r in place of the row with its key.
func withRow(rows *trie[*row], r *row) trie[*row] {
	return rows.with(hashOf(r.key), r, func(have *row) bool { return have.key == r.key }, hashRow)
}

// withoutRow returns rows without the one of that key.
func withoutRow(rows *trie[*row], key string) trie[*row] {
	return rows.without(hashOf(key), func(have *row) bool { return have.key == key }, hashRow)
}

// findRow returns the row with that key, or nil.
func findRow(rows *trie[*row], key string) *row {
	found, _ := rows.find(hashOf(key), func(have *row) bool { return have.key == key })
	return found
}

// hashedRows prepares rows for buildTrie.
func hashedRows(rows []*row) []hashed[*row] {
	list := make([]hashed[*row], len(rows))
	for i, r := range rows {
		list[i] = hashed[*row]{hashOf(r.key), r}
	}
	sortHashed(list)
	return list
}
