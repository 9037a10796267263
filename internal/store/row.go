package store

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/crdcache/crdcache/internal/packed"
)

// row is one stored object. What readers see of it never changes; a new version is a new row.
type row struct {
	key string
	// object is the item if that is packed. Those who hold Store.write may put the same object in another
	// form in its place, unless key is a part of it. Other items are in other.
	object atomic.Pointer[packed.Object]
	other  Item
	// packed are the object's index values behind their length, so that they need not be computed again to
	// take the object out, or to sort by them. Only those who hold Store.write set them, once the row has
	// been published: an index adds its values, and one that has been removed may lose them (see
	// function.gone).
	packed atomic.Pointer[byte]
}

// keptItem is what is kept of the object.
func (r *row) keptItem() Item {
	if o := r.object.Load(); o != nil {
		return o
	}
	return r.other
}

// setItem sets the item of a row that nobody else has yet.
func (r *row) setItem(item Item) {
	if o, ok := item.(*packed.Object); ok {
		r.object.Store(o)
	} else {
		r.other = item
	}
}

// values are the object's index values at this moment.
func (r *row) values() values {
	p := r.packed.Load()
	if p == nil {
		return ""
	}
	length, shift := 0, 0
	for {
		b := *p
		p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1))
		length |= int(b&0x7f) << shift
		if b < 0x80 {
			return values(unsafe.String(p, length))
		}
		shift += 7
	}
}

// keep sets the values.
func (r *row) keep(some values, more []byte) {
	length := len(some) + len(more)
	if length == 0 {
		r.packed.Store(nil)
		return
	}
	var prefix [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(prefix[:], uint64(length))
	text := make([]byte, 0, n+length)
	text = append(text, prefix[:n]...)
	text = append(text, some...)
	text = append(text, more...)
	r.packed.Store(&text[0])
}

// share has the row hold another's values, which are the same, so that one copy serves both.
func (r *row) share(other *row) { r.packed.Store(other.packed.Load()) }

// values are the index values of one object, packed: for each index that has any its id, their number, and
// for each its length and bytes. A string takes a quarter of the memory of slices, and objects can share it.
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

// only returns the values without those of indexes that are not among some.
func (vs values) only(fs functions) values {
	var kept []byte
	for rest := string(vs); rest != ""; {
		section := rest
		id, count := cut(&rest), cut(&rest)
		for range count {
			n := cut(&rest)
			rest = rest[n:]
		}
		if slices.ContainsFunc(fs, func(f *function) bool { return f.id == id }) {
			kept = append(kept, section[:len(section)-len(rest)]...)
		}
	}
	if len(kept) == len(vs) {
		return vs
	}
	return values(kept)
}

// cursor goes through the values of one index. It is a value rather than an iterator, because those of
// iterators that cannot be inlined cost allocations, for each object and index.
type cursor struct {
	rest  string
	id    int
	count int // values left of the present section
	value string
	// single says that value is the only one, and comes next.
	single bool
}

// of returns a cursor before the first value of an index.
func (vs values) of(id int) cursor { return cursor{rest: string(vs), id: id} }

// next goes to the next value; false: there is none.
func (c *cursor) next() bool {
	if c.single {
		c.single = false
		return true
	}
	for c.count == 0 {
		if c.rest == "" {
			return false
		}
		section, count := cut(&c.rest), cut(&c.rest)
		if section == c.id {
			c.count = count
			break
		}
		for range count {
			c.skip()
		}
	}
	c.value = c.skip()
	if c.count--; c.count == 0 {
		c.rest = "" // there is one section for each index
	}
	return true
}

// skip takes a value off the front.
func (c *cursor) skip() string {
	n := cut(&c.rest)
	value := c.rest[:n]
	c.rest = c.rest[n:]
	return value
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
func withRow(rows *trie[row], r *row) trie[row] {
	return rows.with(hashOf(r.key), r, func(have *row) bool { return have.key == r.key }, hashRow)
}

// withoutRow returns rows without the one of that key.
func withoutRow(rows *trie[row], key string) trie[row] {
	return rows.without(hashOf(key), func(have *row) bool { return have.key == key }, hashRow)
}

// findRow returns the row with that key, or nil.
func findRow(rows *trie[row], key string) *row { return findHashed(rows, hashOf(key), key) }

// findHashed is findRow for a key whose hash is known. It is trie.find without the calls that a function
// would cost.
func findHashed(rows *trie[row], hash uint64, key string) *row {
	if l := rows.leafOf(hash); l != nil {
		for at := l.next(0, hash); at >= 0; at = l.next(at+1, hash) {
			if r := l.entries[at]; r.key == key {
				return r
			}
		}
	}
	return nil
}

// hashRows returns rows with their hashes.
func hashRows(rows []*row) []hashed[*row] {
	list := make([]hashed[*row], len(rows))
	for i, r := range rows {
		list[i] = hashed[*row]{hashOf(r.key), r}
	}
	return list
}

// hashedRows prepares rows for buildTrie.
func hashedRows(rows []*row) []hashed[*row] {
	list := hashRows(rows)
	sortHashed(list)
	return list
}
