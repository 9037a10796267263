package indexers

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// extraction reads the values for all indexes of a resource in one pass over a document.
type extraction struct {
	set *jsonpath.Set
	// first is the number of the first expression of each index in the set. An index has "when", if set, and
	// then its paths, or "each" and the root paths.
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
		if f.index.elementPath != nil {
			exprs = append(append(exprs, f.index.elementPath), f.index.rootPaths...)
			continue
		}
		exprs = append(exprs, f.index.elementPaths...)
	}
	x.set = jsonpath.NewSet(exprs...)
	return x
}

// extractionState are the values of each expression of a set, with a collector for their keys.
type extractionState struct {
	collector
	values [][]jsonpath.Value
	// elements are the values within one element, while values is in use.
	elements [][]jsonpath.Value
}

var statePool = sync.Pool{New: func() any { return new(extractionState) }}

// emptyLists empties lists and extends them to n.
func emptyLists(lists [][]jsonpath.Value, n int) [][]jsonpath.Value {
	for len(lists) < n {
		lists = append(lists, nil)
	}
	for i := range lists {
		clear(lists[i]) // pooled lists must not pin documents
		lists[i] = lists[i][:0]
	}
	return lists
}

func (f *extractionState) release() {
	f.values, f.elements = emptyLists(f.values, 0), emptyLists(f.elements, 0)
	clear(f.scalars[:cap(f.scalars)])
	clear(f.collector.keys[:cap(f.collector.keys)])
	clear(f.tuple[:cap(f.tuple)])
	f.collector = collector{scalars: f.scalars, keys: f.collector.keys, tuple: f.tuple}
	statePool.Put(f)
}

// addResult is the callback for results of the set.
func (f *extractionState) addResult(i int, v jsonpath.Value) bool {
	f.values[i] = append(f.values[i], v)
	return true
}

// noteElement is the callback for results within an element.
func (f *extractionState) noteElement(i int, v jsonpath.Value) bool {
	f.elements[i] = append(f.elements[i], v)
	return true
}

// collect collects the keys of one index. first is the number of its first expression.
func (f *extractionState) collect(first int) {
	f.function.calls.Add(1)
	if f.index.when != nil {
		if len(f.values[first]) == 0 {
			f.notSelected.Add(1)
			return
		}
		first++
	}
	if f.index.elementPath == nil {
		f.addTuples(element{values: f.values[first : first+len(f.index.elementPaths)]})
	} else {
		f.rootValues = f.values[first+1 : first+1+len(f.index.rootPaths)]
		f.collectElements(f.values[first])
	}
	f.countKeys()
}

// collectElements collects the keys of all elements.
func (f *extractionState) collectElements(elements []jsonpath.Value) {
	for _, e := range elements {
		f.elements = emptyLists(f.elements, len(f.index.elementPaths))
		// cannot fail: the element is part of a valid document
		_ = f.index.elements.FindJSON(e.Raw(), f.noteElement)
		f.addTuples(element{values: f.elements})
	}
	if len(elements) == 0 {
		f.missingValues.Add(1)
	}
}

// objectKeyOfJSON is objectKey for JSON.
func objectKeyOfJSON(json []byte) string {
	text := func(p *jsonpath.Path) string {
		v, _, _ := p.FirstJSON(json)
		b, _ := v.Text()
		return string(b)
	}
	return cache.NewObjectName(text(namespacePath), text(namePath)).String()
}

// storedObject is an object stored as JSON, such as a dynamicinformer.PackedObject.
type storedObject interface {
	ReadJSON(read func(json []byte) error) error
	Decoded() *unstructured.Unstructured
	Unstructured() *unstructured.Unstructured
}

// StoredKeys returns the keys of an object as a cache stores it: [Functions.KeysJSON] for JSON, which is not
// decoded, otherwise [Functions.Keys].
func (f *Functions) StoredKeys(object any) [][]string { return f.storedKeysAndValues(object, false) }

// StoredValues is StoredKeys with repeated keys for repeated values. maxValues does not apply.
func (f *Functions) StoredValues(object any) [][]string { return f.storedKeysAndValues(object, true) }

func (f *Functions) storedKeysAndValues(object any, keepRepeated bool) [][]string {
	o, ok := object.(storedObject)
	if !ok {
		return f.decodedKeys(object, keepRepeated)
	}
	if u := o.Decoded(); u != nil {
		return f.decodedKeys(u, keepRepeated)
	}
	var keys [][]string
	err := o.ReadJSON(func(json []byte) error {
		keys = f.keysJSON(json, nil, keepRepeated)
		return nil
	})
	if err != nil { // invalid JSON: use the readable part
		return f.decodedKeys(o.Unstructured(), keepRepeated)
	}
	return keys
}
