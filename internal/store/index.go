package store

import "slices"

// index finds rows by the values of one index function. It is immutable like a trie.
type index struct {
	function *function
	postings trie[posting]
	// order has the values of postings where the function is sorted.
	order order
}

// posting is one value and the rows that have it: most indexes have many values with one row, for which there
// is no set.
type posting struct {
	value string
	// one is set when there is one row, and many when there are more.
	one  *row
	many *trie[*row]
}

func hashPosting(p posting) uint64 { return hashOf(p.value) }

func (p posting) len() int {
	switch {
	case p.many != nil:
		return p.many.len
	case p.one != nil:
		return 1
	default:
		return 0
	}
}

// all calls yield for each row until it returns false.
func (p posting) all(yield func(*row) bool) {
	switch {
	case p.many != nil:
		p.many.all(yield)
	case p.one != nil:
		yield(p.one)
	}
}

// with returns the posting with r in place of the row with its key.
func (p posting) with(r *row) posting {
	switch {
	case p.many != nil:
		many := withRow(p.many, r)
		p.many = &many
	case p.one == nil || p.one.key == r.key:
		p.one = r
	default:
		many := buildTrie(hashedRows([]*row{p.one, r}))
		p.one, p.many = nil, &many
	}
	return p
}

// without returns the posting without the row of that key.
func (p posting) without(key string) posting {
	if p.many == nil {
		if p.one != nil && p.one.key == key {
			p.one = nil
		}
		return p
	}
	many := withoutRow(p.many, key)
	p.many = &many
	if many.len == 1 {
		p.many = nil
		for r := range many.all {
			p.one = r
		}
	}
	return p
}

// posting returns the rows of a value.
func (x *index) posting(value string) posting {
	found, _ := x.postings.find(hashOf(value), func(p posting) bool { return p.value == value })
	return found
}

// insert puts a row under a value, in place of a row with the same key.
func (x *index) insert(value string, r *row) {
	p := x.posting(value)
	isNew := p.len() == 0
	if isNew || p.one != nil && p.one.key == r.key {
		p.value = x.function.own(value, r)
	}
	if isNew && x.function.sorted {
		x.order = x.order.with(p.value)
	}
	x.set(p.with(r))
}

// remove takes a row from under a value.
func (x *index) remove(value string, r *row) {
	p := x.posting(value)
	if p.len() == 0 {
		return
	}
	if p = p.without(r.key); p.len() > 0 {
		x.set(p)
		return
	}
	x.postings = x.postings.without(hashOf(value), func(have posting) bool { return have.value == value }, hashPosting)
	if x.function.sorted {
		x.order = x.order.without(value)
	}
}

func (x *index) set(p posting) {
	x.postings = x.postings.with(hashPosting(p), p, func(have posting) bool { return have.value == p.value }, hashPosting)
}

// replace takes old out and puts next in; either may be nil. Both have the same key.
func (x *index) replace(old, next *row) {
	f := x.function
	if old != nil && (next == nil || f.derived || old.values != next.values) {
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
	row   *row
}

// buildIndex returns the index of rows, no two of which have the same key.
func buildIndex(f *function, rows []*row) index {
	entries := make([]hashed[entry], 0, len(rows))
	for _, r := range rows {
		for c := f.valuesOf(r); c.next(); {
			entries = append(entries, hashed[entry]{hashOf(c.value), entry{c.value, r}})
		}
	}
	sortHashed(entries)
	postings := make([]hashed[posting], 0)
	for len(entries) > 0 {
		end := 1
		for end < len(entries) && entries[end].hash == entries[0].hash {
			end++
		}
		postings = appendPostings(f, postings, entries[:end])
		entries = entries[end:]
	}
	x := index{function: f, postings: buildTrie(postings)}
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
func appendPostings(f *function, to []hashed[posting], entries []hashed[entry]) []hashed[posting] {
	for len(entries) > 0 {
		first := entries[0].entry
		rows := make([]*row, 0, len(entries))
		var others []hashed[entry]
		for _, e := range entries {
			if e.entry.value == first.value {
				rows = append(rows, e.entry.row)
			} else {
				others = append(others, e)
			}
		}
		to = append(to, hashed[posting]{entries[0].hash, newPosting(f, first, rows)})
		entries = others
	}
	return to
}

func newPosting(f *function, first entry, rows []*row) posting {
	p := posting{value: f.own(first.value, first.row)}
	if len(rows) == 1 {
		p.one = rows[0]
		return p
	}
	for _, r := range rows {
		if r.values == first.row.values {
			r.values = first.row.values // one copy serves all
		}
	}
	many := buildTrie(hashedRows(rows))
	p.many = &many
	return p
}
