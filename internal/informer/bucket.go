package informer

import (
	"slices"
	"strings"
)

// entry is one stored object and the places where the indexes hold it.
type entry struct {
	key  string
	item Item
	// refs leads from the object to its index buckets, grouped by index. Only writers touch it.
	refs []ref
	// version is the table's index version at the last write of this entry.
	version uint32
}

// ref says that bucket.entries[pos] is the entry that holds the ref.
type ref struct {
	bucket *bucket
	pos    int
}

// bucket holds the entries with one value of one index. A slice with back references costs 8 bytes per entry
// where a set of keys costs some 50, and is read in one go; removal swaps the last entry into the gap.
type bucket struct {
	index   *index
	value   string
	entries []*entry
}

// index maps values to buckets. Empty buckets are deleted, so that short-lived values leave nothing behind.
type index struct {
	name    string
	buckets map[string]*bucket
}

func newIndex(name string) *index { return &index{name: name, buckets: map[string]*bucket{}} }

// attach puts the entry under each value; a value given twice counts once.
func (x *index) attach(e *entry, values []string) {
	for _, value := range values {
		b := x.buckets[value]
		if b == nil {
			// The copy keeps a small value from holding on to the large object that it was cut from.
			b = &bucket{index: x, value: strings.Clone(value)}
			x.buckets[b.value] = b
		} else if len(values) > 1 && slices.ContainsFunc(e.refs, func(r ref) bool { return r.bucket == b }) {
			continue
		}
		e.refs = append(e.refs, ref{bucket: b, pos: len(b.entries)})
		b.entries = append(b.entries, e)
	}
}

// detach takes the entry out of all its buckets.
func (e *entry) detach() {
	for _, r := range e.refs {
		r.bucket.remove(r.pos)
	}
	e.refs = e.refs[:0]
}

// remove deletes the entry at pos. The last entry moves into the gap and its ref is corrected.
func (b *bucket) remove(pos int) {
	last := len(b.entries) - 1
	if pos != last {
		moved := b.entries[last]
		b.entries[pos] = moved
		i := slices.IndexFunc(moved.refs, func(r ref) bool { return r.bucket == b })
		moved.refs[i].pos = pos
	}
	b.entries[last] = nil
	b.entries = b.entries[:last]
	if last == 0 {
		delete(b.index.buckets, b.value)
		return
	}
	if cap(b.entries) > 64 && len(b.entries) < cap(b.entries)/4 {
		b.entries = slices.Clone(b.entries) // a bucket that was large once does not stay large
	}
}

// indexedAs reports whether the entry is in exactly the places that the values ask for, in their order.
func (e *entry) indexedAs(indexes []*index, values [][]string) bool {
	n := 0
	for k, vs := range values {
		for _, v := range vs {
			if n == len(e.refs) || e.refs[n].bucket.index != indexes[k] || e.refs[n].bucket.value != v {
				return false
			}
			n++
		}
	}
	return n == len(e.refs)
}
