package store

import (
	"slices"
	"unsafe"
)

// index finds rows by the values of one index function. It is immutable like a trie.
type index struct {
	function *function
	postings trie[posting]
	// order has the values of postings where the function is sorted.
	order order
	// entries counts the rows of all postings: one that has two values counts twice.
	entries int
}

// posting is one value and the rows that have it. Most indexes have many values with one row, for which there is no
// set: a posting without its one row is the beginning of a manyPosting.
type posting struct {
	value string
	one   *row
}

// manyPosting is a posting of two rows or more.
type manyPosting struct {
	posting // without one
	rows    trie[row]
}

func hashPosting(p *posting) uint64 { return hashOf(p.value) }

func postingOf(value string, rows trie[row]) *posting {
	return &(&manyPosting{posting{value: value}, rows}).posting
}

// many returns the set of rows, or nil where there is one row.
func (p *posting) many() *trie[row] {
	if p.one != nil {
		return nil
	}
	return &(*manyPosting)(unsafe.Pointer(p)).rows
}

// len counts the rows; p may be nil.
func (p *posting) len() int {
	switch {
	case p == nil:
		return 0
	case p.one != nil:
		return 1
	default:
		return p.many().len
	}
}

// all calls yield for each row until it returns false; p may be nil.
func (p *posting) all(yield func(*row) bool) {
	switch {
	case p == nil:
	case p.one != nil:
		yield(p.one)
	default:
		p.many().all(yield)
	}
}

// with returns the posting with r in place of the row with its key, under a value that is the same.
func (p *posting) with(r *row, value string) *posting {
	switch {
	case p.one == nil:
		return postingOf(value, withRow(p.many(), r))
	case p.one.key == r.key:
		return &posting{value, r}
	default:
		return postingOf(value, buildTrie(hashedRows([]*row{p.one, r})))
	}
}

// without returns the posting without the row of that key, or nil when there is no other.
func (p *posting) without(key string) *posting {
	if p.one != nil {
		if p.one.key == key {
			return nil
		}
		return p
	}
	rows := withoutRow(p.many(), key)
	if rows.len > 1 {
		return postingOf(p.value, rows)
	}
	last := &posting{value: p.value}
	for r := range rows.all {
		last.one = r
	}
	return last
}

// posting returns the rows of a value, or nil.
func (x *index) posting(value string) *posting {
	hash := hashOf(value)
	if l := x.postings.leafOf(hash); l != nil {
		for at := l.next(0, hash); at >= 0; at = l.next(at+1, hash) {
			if p := l.entries[at]; p.value == value {
				return p
			}
		}
	}
	return nil
}

// insert puts a row under a value, in place of a row with the same key.
func (x *index) insert(value string, r *row) {
	switch p := x.posting(value); {
	case p == nil:
		value = x.function.own(value, r)
		if x.function.sorted {
			x.order = x.order.with(value)
		}
		x.set(&posting{value, r})
		x.entries++
	case p.one != nil && p.one.key == r.key: // the old row's memory is not to be kept for its value
		x.set(p.with(r, x.function.own(value, r)))
	default:
		next := p.with(r, p.value)
		x.set(next)
		x.entries += next.len() - p.len()
	}
}

// remove takes a row from under a value.
func (x *index) remove(value string, r *row) {
	p := x.posting(value)
	if p == nil {
		return
	}
	if less := p.without(r.key); less != nil {
		x.set(less)
		x.entries += less.len() - p.len()
		return
	}
	x.entries--
	x.postings = x.postings.without(hashOf(value), func(have *posting) bool { return have.value == value }, hashPosting)
	if x.function.sorted {
		x.order = x.order.without(value)
	}
}

func (x *index) set(p *posting) {
	x.postings = x.postings.with(hashPosting(p), p, func(have *posting) bool { return have.value == p.value }, hashPosting)
}

// replace takes old out and puts next in; either may be nil. Both have the same key.
func (x *index) replace(old, next *row) {
	f := x.function
	if old != nil && (next == nil || f.derived || old.values() != next.values()) {
		for c := f.valuesOf(old); c.next(); {
			if next == nil || !f.has(next, c.value) {
				x.remove(c.value, old)
			}
		}
	}
	if next != nil {
		for c := f.valuesOf(next); c.next(); {
			x.insert(c.value, next)
		}
	}
}

// entry is a row under a value.
type entry struct {
	value string
	row   hashed[*row]
}

// buildIndex returns the index of rows, no two of which have the same key.
func buildIndex(f *function, rows []hashed[*row]) index {
	entries := make([]hashed[entry], 0, len(rows))
	var last hashed[string] // lists are sorted by namespace: what comes next has the same value as often as not
	for _, r := range rows {
		for c := f.valuesOf(r.entry); c.next(); {
			switch {
			case last.entry != c.value || len(entries) == 0:
				last = hashed[string]{hashOf(c.value), c.value}
			case f.derived: // comparing the same memory is free, and its owner does not matter: see function.own
				c.value = last.entry
			}
			entries = append(entries, hashed[entry]{last.hash, entry{c.value, r}})
		}
	}
	sortHashed(entries)
	count := len(entries)
	postings := make([]hashed[*posting], 0)
	for len(entries) > 0 {
		end := 1
		for end < len(entries) && entries[end].hash == entries[0].hash {
			end++
		}
		postings = appendPostings(f, postings, entries[:end])
		entries = entries[end:]
	}
	x := index{function: f, postings: buildTrie(postings), entries: count}
	if f.sorted {
		values := make([]string, len(postings))
		for i, p := range postings {
			values[i] = p.entry.value
		}
		slices.Sort(values)
		x.order = buildOrder(values)
	}
	return x
}

// appendPostings appends the postings of entries whose values have one hash, which means one value as good as
// always.
func appendPostings(f *function, to []hashed[*posting], entries []hashed[entry]) []hashed[*posting] {
	for len(entries) > 0 {
		first := entries[0].entry
		rows := make([]hashed[*row], 0, len(entries))
		var others []hashed[entry]
		for _, e := range entries {
			if e.entry.value == first.value {
				rows = append(rows, e.entry.row)
			} else {
				others = append(others, e)
			}
		}
		to = append(to, hashed[*posting]{entries[0].hash, newPosting(f, first, rows)})
		entries = others
	}
	return to
}

func newPosting(f *function, first entry, rows []hashed[*row]) *posting {
	value := f.own(first.value, first.row.entry)
	if len(rows) == 1 {
		return &posting{value, rows[0].entry}
	}
	for _, r := range rows {
		if r.entry != first.row.entry && r.entry.values() == first.row.entry.values() {
			r.entry.share(first.row.entry)
		}
	}
	sortHashed(rows)
	return postingOf(value, buildTrie(rows))
}
