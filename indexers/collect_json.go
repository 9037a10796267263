package indexers

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// extraction finds what all indexes of a resource need in one pass over a document.
type extraction struct {
	set *jsonpath.Set
	// slots says where the results of each expression of the set begin and how many expressions an
	// index has: first "when", if it has one, and then its paths, or "each" and the paths from the object on.
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
			exprs = append(append(exprs, f.index.each), f.index.root...)
			continue
		}
		exprs = append(exprs, f.index.inner...)
	}
	x.set = jsonpath.NewSet(exprs...)
	return x
}

// findings are what a set found: the values of each expression, and room to collect keys from them.
type findings struct {
	collecting
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
	clear(f.scalars[:cap(f.scalars)])
	clear(f.collecting.keys[:cap(f.collecting.keys)])
	clear(f.tuple[:cap(f.tuple)])
	f.collecting = collecting{scalars: f.scalars, keys: f.collecting.keys, tuple: f.tuple}
	findingsPool.Put(f)
}

// note notes a result of the set.
func (f *findings) note(i int, v jsonpath.Value) bool {
	f.values[i] = append(f.values[i], v)
	return true
}

// noteElement notes a result of the set of an element.
func (f *findings) noteElement(i int, v jsonpath.Value) bool {
	f.elements[i] = append(f.elements[i], v)
	return true
}

// collect gathers the keys of the document for one index, whose first expression has this number.
func (f *findings) collect(first int) {
	f.function.seen.Add(1)
	if f.index.when != nil {
		if len(f.values[first]) == 0 {
			f.when.Add(1)
			return
		}
		first++
	}
	if f.index.each == nil {
		f.tuples(element{found: f.values[first : first+len(f.index.inner)]})
	} else {
		f.root = f.values[first+1 : first+1+len(f.index.root)]
		f.each(f.values[first])
	}
	f.count()
}

// each gathers the keys of elements.
func (f *findings) each(elements []jsonpath.Value) {
	for _, e := range elements {
		f.elements = room(f.elements, len(f.index.inner))
		// A part of a document that was found valid is valid.
		_ = f.index.elements.FindJSON(e.Raw(), f.noteElement)
		f.tuples(element{found: f.elements})
	}
	if len(elements) == 0 {
		f.missing.Add(1)
	}
}

// documentKey is objectKey of a document.
func documentKey(json []byte) string {
	text := func(p *jsonpath.Path) string {
		v, _, _ := p.FirstJSON(json)
		b, _ := v.Text()
		return string(b)
	}
	return cache.NewObjectName(text(namespacePath), text(namePath)).String()
}

// storedObject is an object whose JSON is kept, such as a dynamicinformer.PackedObject.
type storedObject interface {
	View(read func(json []byte) error) error
	Decoded() *unstructured.Unstructured
	Unstructured() *unstructured.Unstructured
}

// StoredKeys returns the keys of an object as a cache holds it: those of [Functions.KeysJSON] for JSON, which
// is not decoded for it, and else those of [Functions.Keys].
func (f *Functions) StoredKeys(object any) [][]string { return f.stored(object, false) }

// StoredValues is StoredKeys with each key as often as the object has its value. The limit maxValues does not
// apply.
func (f *Functions) StoredValues(object any) [][]string { return f.stored(object, true) }

func (f *Functions) stored(object any, repeated bool) [][]string {
	o, ok := object.(storedObject)
	if !ok {
		return f.decodedKeys(object, repeated)
	}
	if u := o.Decoded(); u != nil {
		return f.decodedKeys(u, repeated)
	}
	var keys [][]string
	err := o.View(func(json []byte) error {
		keys = f.keysJSON(json, nil, repeated)
		return nil
	})
	if err != nil { // the JSON is damaged: use the part that can be read
		return f.decodedKeys(o.Unstructured(), repeated)
	}
	return keys
}
