package store

import (
	"slices"
	"unsafe"
)

// index maps the values of one index function to rows. It is immutable once its snapshot is published:
// insert, remove and replace are called only before that.
type index struct {
	function *function
	postings trie[posting]
	// sortedValues has the values of all postings in sorted order. It is empty unless function.sorted.
	sortedValues sortedValues
	// entryCount is the number of pairs of a value and a row.
	entryCount int
	// runCount is the number of value runs from which the index was built.
	runCount int
}

// posting is one value with its rows. Most indexes have many values with one row, which is stored without a
// set. If singleRow is nil, the posting is the first field of a manyPosting.
type posting struct {
	value     string // the first field: see trie
	singleRow *storedRow
}

// manyPosting is a posting of two or more rows.
type manyPosting struct {
	posting // with singleRow == nil
	rows    trie[storedRow]
}

func postingOf(value string, rows trie[storedRow]) *posting {
	return &(&manyPosting{posting{value: value}, rows}).posting
}

// rowSet returns the set of rows, or nil if there is one row.
func (p *posting) rowSet() *trie[storedRow] {
	if p.singleRow != nil {
		return nil
	}
	return &(*manyPosting)(unsafe.Pointer(p)).rows
}

// len returns the number of rows; p can be nil.
func (p *posting) len() int {
	switch {
	case p == nil:
		return 0
	case p.singleRow != nil:
		return 1
	default:
		return p.rowSet().len
	}
}

// all calls yield for each row until it returns false; p can be nil.
func (p *posting) all(yield func(*storedRow) bool) {
	switch {
	case p == nil:
	case p.singleRow != nil:
		yield(p.singleRow)
	default:
		p.rowSet().all(yield)
	}
}

// withRow returns the posting with r in place of the row with the same key, if any. value equals p.value.
func (p *posting) withRow(r *storedRow, value string) *posting {
	switch {
	case p.singleRow == nil:
		return postingOf(value, p.rowSet().with(r))
	case p.singleRow.key == r.key:
		return &posting{value, r}
	default:
		return postingOf(value, buildTrie(hashEntries(p.singleRow, r)))
	}
}

// withoutRow returns the posting without the row with that key, or nil if no row remains.
func (p *posting) withoutRow(key string) *posting {
	if p.singleRow != nil {
		if p.singleRow.key == key {
			return nil
		}
		return p
	}
	rows := p.rowSet().without(key)
	if rows.len > 1 {
		return postingOf(p.value, rows)
	}
	last := &posting{value: p.value}
	for r := range rows.all {
		last.singleRow = r
	}
	return last
}

// posting returns the posting of a value, or nil.
func (x *index) posting(value string) *posting { return x.postings.find(value) }

// insert adds a row under a value, or replaces the row with the same key.
func (x *index) insert(value string, r *storedRow) {
	switch p := x.posting(value); {
	case p == nil:
		value = x.function.ownedValue(value, r)
		if x.function.sorted {
			x.sortedValues = x.sortedValues.with(value)
		}
		x.set(&posting{value, r})
		x.entryCount++
	case p.singleRow != nil && p.singleRow.key == r.key: // do not retain the old row's memory for the value
		x.set(p.withRow(r, x.function.ownedValue(value, r)))
	default:
		next := p.withRow(r, p.value)
		x.set(next)
		x.entryCount += next.len() - p.len()
	}
}

func (x *index) remove(value string, r *storedRow) {
	p := x.posting(value)
	if p == nil {
		return
	}
	if remaining := p.withoutRow(r.key); remaining != nil {
		x.set(remaining)
		x.entryCount += remaining.len() - p.len()
		return
	}
	x.entryCount--
	x.postings = x.postings.without(value)
	if x.function.sorted {
		x.sortedValues = x.sortedValues.without(value)
	}
}

func (x *index) set(p *posting) { x.postings = x.postings.with(p) }

// replace replaces old with next; either can be nil. Both have the same key.
func (x *index) replace(old, next *storedRow) {
	f := x.function
	if old != nil && (next == nil || f.byNamespace || old.values() != next.values()) {
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

// valueRun is a range of entries, adjacent in the list, with the same value.
type valueRun struct {
	value    string
	from, to int
}

// indexScratch is memory for building an index, reused for the next index to reduce garbage.
type indexScratch struct {
	entries, gathered, sorted []hashedEntry[*storedRow]
	sorting                   bucketSort[*storedRow]
}

// buildIndex returns the index of rows with distinct keys. before is the index that it replaces, which serves
// to estimate sizes; it can be nil.
func buildIndex(f *function, rows []hashedEntry[*storedRow], before *index, scratch *indexScratch) index {
	var runs []hashedEntry[valueRun]
	var postings []hashedEntry[*posting]
	if before != nil {
		runs = make([]hashedEntry[valueRun], 0, before.runCount)
		postings = make([]hashedEntry[*posting], 0, before.postings.len)
	}
	entries, runs := valueRuns(f, rows, scratch.entries[:0], runs)
	scratch.entries = entries
	sortHashed(runs)
	count := len(runs)
	for len(runs) > 0 {
		end := 1
		for end < len(runs) && runs[end].hash == runs[0].hash {
			end++
		}
		postings = appendPostings(f, postings, runs[:end], scratch)
		runs = runs[end:]
	}
	x := index{function: f, postings: buildTrie(postings), entryCount: len(entries), runCount: count}
	if f.sorted {
		values := make([]string, len(postings))
		for i, p := range postings {
			values[i] = p.entry.value
		}
		slices.Sort(values)
		x.sortedValues = buildSortedValues(values)
	}
	return x
}

// valueRuns returns the rows once for each of their values, and the runs of rows with the same value. Lists
// are sorted by namespace, so adjacent rows often have the same value. It appends to entries and runs.
func valueRuns(f *function, rows, entries []hashedEntry[*storedRow],
	runs []hashedEntry[valueRun]) ([]hashedEntry[*storedRow], []hashedEntry[valueRun]) {
	entries = slices.Grow(entries, len(rows))
	for _, r := range rows {
		for c := f.valuesOf(r.entry); c.next(); {
			if last := len(runs) - 1; last >= 0 && runs[last].entry.value == c.value {
				runs[last].entry.to++
			} else {
				runs = append(runs,
					hashedEntry[valueRun]{hashOf(c.value), valueRun{c.value, len(entries), len(entries) + 1}})
			}
			entries = append(entries, r)
		}
	}
	return entries, runs
}

// appendPostings appends the postings of runs with the same hash. They nearly always have the same value.
func appendPostings(f *function, to []hashedEntry[*posting], runs []hashedEntry[valueRun],
	scratch *indexScratch) []hashedEntry[*posting] {
	for len(runs) > 0 {
		first := runs[0].entry
		rows := scratch.entries[first.from:first.to]
		var others []hashedEntry[valueRun]
		if len(runs) > 1 {
			rows = append(scratch.gathered[:0], rows...)
			for _, r := range runs[1:] {
				if r.entry.value == first.value {
					rows = append(rows, scratch.entries[r.entry.from:r.entry.to]...)
				} else {
					others = append(others, r)
				}
			}
			scratch.gathered = rows
		}
		to = append(to, hashedEntry[*posting]{runs[0].hash, newPosting(f, first.value, rows, scratch)})
		runs = others
	}
	return to
}

func newPosting(f *function, value string, rows []hashedEntry[*storedRow], scratch *indexScratch) *posting {
	first := rows[0].entry
	value = f.ownedValue(value, first)
	if len(rows) == 1 {
		return &posting{value, first}
	}
	for _, r := range rows {
		if r.entry != first && r.entry.values() == first.values() {
			r.entry.shareValues(first)
		}
	}
	scratch.sorted = slices.Grow(scratch.sorted[:0], len(rows))[:len(rows)]
	scratch.sorting.sortInto(scratch.sorted, rows)
	return postingOf(value, buildTrie(scratch.sorted))
}
