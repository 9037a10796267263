package store

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/crdcache/crdcache/internal/packed"
)

// storedRow is one stored object. The content that readers see never changes; a new version is a new row.
type storedRow struct {
	key string // the first field: see trie; keyOf returns it
	// object is the item if it is packed; unpacked is any other item. Holders of Store.write can replace the
	// object by a compressed or decompressed copy, unless key shares the object's memory.
	object   atomic.Pointer[packed.Object]
	unpacked Item
	// encoded points to the object's index values, prefixed by their length. Keeping them avoids computing
	// them again to remove the object or to sort by a value. Once the row is published, only holders of
	// Store.write change them: an added index appends its values, and the values of a removed one can be
	// dropped (see function.removed).
	encoded atomic.Pointer[byte]
}

func (r *storedRow) item() Item {
	if r.isIdentity() {
		return r.identity()
	}
	if o := r.object.Load(); o != nil {
		return o
	}
	return r.unpacked
}

// packed returns the stored item if it is packed, otherwise nil.
func (r *storedRow) packed() *packed.Object {
	if r.isIdentity() {
		return nil
	}
	return r.object.Load()
}

func (r *storedRow) setItem(item Item) {
	if o, ok := item.(*packed.Object); ok {
		r.object.Store(o)
	} else {
		r.unpacked = item
	}
}

// values returns the object's current index values.
func (r *storedRow) values() indexValues {
	if r.isIdentity() {
		return ""
	}
	p := r.encoded.Load()
	if p == nil {
		return ""
	}
	length, shift := 0, 0
	for {
		b := *p
		p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1))
		length |= int(b&0x7f) << shift
		if b < 0x80 {
			return indexValues(unsafe.String(p, length))
		}
		shift += 7
	}
}

// setValues sets the index values to the concatenation of vs and appended.
func (r *storedRow) setValues(vs indexValues, appended []byte) {
	length := len(vs) + len(appended)
	if length == 0 {
		r.encoded.Store(nil)
		return
	}
	var prefix [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(prefix[:], uint64(length))
	text := make([]byte, 0, n+length)
	text = append(text, prefix[:n]...)
	text = append(text, vs...)
	text = append(text, appended...)
	r.encoded.Store(&text[0])
}

// shareValues makes the row refer to the equal values of another row.
func (r *storedRow) shareValues(other *storedRow) { r.encoded.Store(other.encoded.Load()) }

// indexValues are the encoded index values of one object: for each index that has any, its id, the number of
// values, and each value with its length. One string needs a quarter of the memory, and objects share it.
type indexValues string

// appendValues appends the values of the index id.
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

// sections iterates over the encoded values of each index, with its id.
func (vs indexValues) sections(yield func(id int, section string) bool) {
	for rest := string(vs); rest != ""; {
		section := rest
		id, count := consumeLength(&rest), consumeLength(&rest)
		for range count {
			n := consumeLength(&rest)
			rest = rest[n:]
		}
		if !yield(id, section[:len(section)-len(rest)]) {
			return
		}
	}
}

// selectFunctions returns the values that belong to one of the functions.
func (vs indexValues) selectFunctions(fs functions) indexValues {
	var selected []byte
	for id, section := range vs.sections {
		if slices.ContainsFunc(fs, func(f *function) bool { return f.id == id }) {
			selected = append(selected, section...)
		}
	}
	if len(selected) == len(vs) {
		return vs
	}
	return indexValues(selected)
}

// cursor iterates over the values of one index. It is a value type, because iterators that are not inlined
// allocate for each object and index.
type cursor struct {
	rest       string
	functionID int
	count      int // values left in the current section
	value      string
	// hasSingleValue is set if value is the only value and next has not returned it.
	hasSingleValue bool
}

// cursor returns a cursor before the first value of index id.
func (vs indexValues) cursor(id int) cursor { return cursor{rest: string(vs), functionID: id} }

// next advances to the next value and reports whether there is one.
func (c *cursor) next() bool {
	if c.hasSingleValue {
		c.hasSingleValue = false
		return true
	}
	for c.count == 0 {
		if c.rest == "" {
			return false
		}
		section, count := consumeLength(&c.rest), consumeLength(&c.rest)
		if section == c.functionID {
			c.count = count
			break
		}
		for range count {
			c.skip()
		}
	}
	c.value = c.skip()
	if c.count--; c.count == 0 {
		c.rest = "" // an index has only one section
	}
	return true
}

func (c *cursor) skip() string {
	n := consumeLength(&c.rest)
	value := c.rest[:n]
	c.rest = c.rest[n:]
	return value
}

// consumeLength consumes a varint.
func consumeLength(text *string) int {
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
