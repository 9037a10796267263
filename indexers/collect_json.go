package indexers

import (
	"sync"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// extraction finds what all indexes of a resource need in one pass over a document.
type extraction struct {
	set *jsonpath.Set
	// slots says where the results of each expression of the set begin and how many expressions an
	// index has: first "when", if it has one, and then "each" or its parts.
	first []int
}

func newExtraction(functions []*function) extraction {
	var x extraction
	var exprs []jsonpath.Expr
	for _, f := range functions {
		x.first = append(x.first, len(exprs))
		if f.index.when != nil {
			exprs = append(exprs, f.index.when)
		}
		if f.index.each != nil {
			exprs = append(exprs, f.index.each)
			continue
		}
		for n := range f.index.parts {
			exprs = append(exprs, f.index.parts[n].path)
		}
	}
	x.set = jsonpath.NewSet(exprs...)
	return x
}

// findings are what a set found: the values of each expression.
type findings struct {
	values [][]jsonpath.Value
	// elements is for the parts within one element, while values is in use.
	elements [][]jsonpath.Value
}

var findingsPool = sync.Pool{New: func() any { return new(findings) }}

// room empties lists and makes n of them.
func room(lists [][]jsonpath.Value, n int) [][]jsonpath.Value {
	for len(lists) < n {
		lists = append(lists, nil)
	}
	for i := range lists {
		clear(lists[i]) // the pool must not keep documents alive
		lists[i] = lists[i][:0]
	}
	return lists
}

// release gives the space back.
func (f *findings) release() {
	f.values, f.elements = room(f.values, 0), room(f.elements, 0)
	findingsPool.Put(f)
}

// documentElement is a place in a document, whose values have been found.
type documentElement [][]jsonpath.Value

func (e documentElement) values(n int, yield func(scalar)) {
	for _, v := range e[n] {
		yield(scalarOfJSON(v))
	}
}

// document gathers the keys of a document for one index; found holds the results of its expressions.
func (c *collecting) document(f *findings, found [][]jsonpath.Value) {
	c.function.seen.Add(1)
	if c.index.when != nil {
		if len(found[0]) == 0 {
			c.when.Add(1)
			return
		}
		found = found[1:]
	}
	if c.index.each == nil {
		c.tuples(documentElement(found))
	} else {
		c.each(f, found[0])
	}
	c.count()
}

// each gathers the keys of elements.
func (c *collecting) each(f *findings, elements []jsonpath.Value) {
	for _, e := range elements {
		f.elements = room(f.elements, len(c.index.parts))
		// A part of a document that was found valid is valid.
		_ = c.index.elements.FindJSON(e.Raw(), func(i int, v jsonpath.Value) bool {
			f.elements[i] = append(f.elements[i], v)
			return true
		})
		c.tuples(documentElement(f.elements))
	}
	if len(elements) == 0 {
		c.missing.Add(1)
	}
}

// documentKey is objectKey of a document.
func documentKey(json []byte) string {
	text := func(p *jsonpath.Path) string {
		v, _, _ := p.FirstJSON(json)
		b, _ := v.Text()
		return string(b)
	}
	return joinKey(text(namespacePath), text(namePath))
}
