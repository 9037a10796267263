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
	// stretches is how many stretches of rows with one value it was built of.
	stretches int
}

// posting is one value and the rows that have it. Most indexes have many values with one row, for which there
// is no set: a posting without its one row is the beginning of a manyPosting.
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
	x.postings = x.postings.without(hashOf(value), func(have *posting) bool { return have.value == value },
		hashPosting)
	if x.function.sorted {
		x.order = x.order.without(value)
	}
}

func (x *index) set(p *posting) {
	x.postings = x.postings.with(hashPosting(p), p, func(have *posting) bool { return have.value == p.value },
		hashPosting)
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

// stretch is a value and the rows next to each other that have it, as numbers of entries.
type stretch struct {
	value    string
	from, to int
}

// indexRoom is the memory that building an index takes, to be used again for the next one: with a million
// rows, what is left for the collector counts.
type indexRoom struct {
	entries, gathered, sorted []hashed[*row]
	sorting                   buckets[*row]
}

// buildIndex returns the index of rows, no two of which have the same key. before is the one that it takes
// the place of, which tells how much room it takes; nil: there is none.
func buildIndex(f *function, rows []hashed[*row], before *index, room *indexRoom) index {
	var stretches []hashed[stretch]
	var postings []hashed[*posting]
	if before != nil {
		stretches = make([]hashed[stretch], 0, before.stretches)
		postings = make([]hashed[*posting], 0, before.postings.len)
	}
	entries, stretches := stretchesOf(f, rows, room.entries[:0], stretches)
	room.entries = entries
	sortHashed(stretches)
	count := len(stretches)
	for len(stretches) > 0 {
		end := 1
		for end < len(stretches) && stretches[end].hash == stretches[0].hash {
			end++
		}
		postings = appendPostings(f, postings, stretches[:end], room)
		stretches = stretches[end:]
	}
	x := index{function: f, postings: buildTrie(postings), entries: len(entries), stretches: count}
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

// stretchesOf returns the rows under each of their values, and which of these follow each other: lists are
// sorted by namespace, so that what comes next has the same value as often as not. Both are appended to what
// has room for them.
func stretchesOf(f *function, rows, entries []hashed[*row],
	stretches []hashed[stretch]) ([]hashed[*row], []hashed[stretch]) {
	entries = slices.Grow(entries, len(rows))
	for _, r := range rows {
		for c := f.valuesOf(r.entry); c.next(); {
			if last := len(stretches) - 1; last >= 0 && stretches[last].entry.value == c.value {
				stretches[last].entry.to++
			} else {
				stretches = append(stretches,
					hashed[stretch]{hashOf(c.value), stretch{c.value, len(entries), len(entries) + 1}})
			}
			entries = append(entries, r)
		}
	}
	return entries, stretches
}

// appendPostings appends the postings of stretches whose values have one hash, which means one value as good
// as always.
func appendPostings(f *function, to []hashed[*posting], stretches []hashed[stretch],
	room *indexRoom) []hashed[*posting] {
	for len(stretches) > 0 {
		first := stretches[0].entry
		rows := room.entries[first.from:first.to]
		var others []hashed[stretch]
		if len(stretches) > 1 {
			rows = append(room.gathered[:0], rows...)
			for _, r := range stretches[1:] {
				if r.entry.value == first.value {
					rows = append(rows, room.entries[r.entry.from:r.entry.to]...)
				} else {
					others = append(others, r)
				}
			}
			room.gathered = rows
		}
		to = append(to, hashed[*posting]{stretches[0].hash, newPosting(f, first.value, rows, room)})
		stretches = others
	}
	return to
}

func newPosting(f *function, value string, rows []hashed[*row], room *indexRoom) *posting {
	first := rows[0].entry
	value = f.own(value, first)
	if len(rows) == 1 {
		return &posting{value, first}
	}
	for _, r := range rows {
		if r.entry != first && r.entry.values() == first.values() {
			r.entry.share(first)
		}
	}
	room.sorted = slices.Grow(room.sorted[:0], len(rows))[:len(rows)]
	room.sorting.sortInto(room.sorted, rows)
	return postingOf(value, buildTrie(room.sorted))
}
