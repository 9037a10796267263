package store

import (
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// function is an index function with its name. All fields except removed are immutable.
type function struct {
	name string
	// id identifies the function's values in a row. Ids are never reused.
	id int
	fn cache.IndexFunc
	// byNamespace marks the index by namespace. Rows do not store its value; computing it is cheap.
	byNamespace bool
	// extractor, if set, computes the values of packed objects without decoding them. position is the
	// index's position in the results of the extractor.
	extractor Extractor
	position  int
	// sorted is set if the index keeps its values in order.
	sorted bool
	// removed is set before rows lose the values of a removed index. While it is not set, a value that is
	// missing in a row is known to be absent.
	removed atomic.Bool
}

// newFunction recognizes the index by namespace by its code address, because funcs are not comparable.
func newFunction(name string, id int, fn cache.IndexFunc) *function {
	namespaceFunc := reflect.ValueOf(cache.IndexFunc(cache.MetaNamespaceIndexFunc)).Pointer()
	return &function{name: name, id: id, fn: fn, byNamespace: fn != nil &&
		reflect.ValueOf(fn).Pointer() == namespaceFunc}
}

// valuesOf returns a cursor before the first value of a row.
func (f *function) valuesOf(r *storedRow) cursor {
	if !f.byNamespace {
		return r.values().cursor(f.id)
	}
	if o := r.packed(); o != nil {
		return cursor{value: o.Namespace(), hasSingleValue: true}
	}
	m, err := meta.Accessor(r.item())
	if err != nil {
		return cursor{}
	}
	return cursor{value: m.GetNamespace(), hasSingleValue: true}
}

func (f *function) has(r *storedRow, value string) bool {
	for c := f.valuesOf(r); c.next(); {
		if c.value == value {
			return true
		}
	}
	return false
}

// ownedValue returns a row's value for an index to retain. It copies one that would retain much memory.
func (f *function) ownedValue(value string, r *storedRow) string {
	if f.byNamespace || len(r.values()) > 2*len(value)+32 {
		return strings.Clone(value)
	}
	return value
}

// functions are the index functions of a store, in the order of addition.
type functions []*function

// functionFactory creates functions with ids starting with next.
type functionFactory func(next int) functions

func indexFunctions(indexers cache.Indexers) functionFactory {
	return func(next int) functions {
		var fs functions
		for _, name := range slices.Sorted(maps.Keys(indexers)) {
			fs = append(fs, newFunction(name, next+len(fs), indexers[name]))
		}
		return fs
	}
}

// conflicts returns the names of added functions that already exist, sorted.
func (fs functions) conflicts(added functions) []string {
	var names []string
	for _, f := range added {
		if slices.ContainsFunc(fs, func(existing *function) bool { return existing.name == f.name }) {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// evaluate returns the encoded values of an item. It calls decode if a function needs the decoded object. A
// function that fails yields no values and is added to failures.
func (fs functions) evaluate(key string, item Item, decode func(Item) any, failures *Failures) []byte {
	var encoded []byte
	var decoded any
	var extracted extraction
	for _, f := range fs {
		switch {
		case f.fn == nil:
			continue
		case f.extractor != nil && extracted.extractItem(f.extractor, item):
			encoded = appendValues(encoded, f.id, withoutDuplicates(extracted.values[f.position]))
			continue
		case f.byNamespace:
			if _, err := meta.Accessor(item); err != nil {
				failures.add(f.name, key, err)
			}
			continue
		case decoded == nil:
			decoded = decode(item)
		}
		list, err := f.call(decoded)
		if err != nil {
			failures.add(f.name, key, err)
			continue
		}
		encoded = appendValues(encoded, f.id, withoutDuplicates(list))
	}
	return encoded
}

// call calls the function and recovers from panics.
func (f *function) call(object any) (values []string, err error) {
	defer RecoverError(&err)
	return f.fn(object)
}

func withoutDuplicates(list []string) []string {
	if len(list) < 2 {
		return list
	}
	list = slices.Clone(list) // it belongs to the function or the object
	slices.Sort(list)
	return slices.Compact(list)
}

// Extractor computes the values of several indexes in one pass over an object's JSON, without decoding it.
// dynamicinformer.IndexSet describes it. indexers.Functions, compiled from a config, implements it.
type Extractor interface {
	Names() []string
	Ordered(i int) bool
	Indexers() cache.Indexers
	KeysJSON(json []byte, keys [][]string) [][]string
}

func extractorFunctions(e Extractor) functionFactory {
	return func(firstID int) functions {
		fs := make(functions, 0, len(e.Names()))
		byName := e.Indexers()
		for i, name := range e.Names() {
			f := newFunction(name, firstID+i, byName[name])
			f.extractor, f.position, f.sorted = e, i, e.Ordered(i)
			fs = append(fs, f)
		}
		return fs
	}
}

// BuildObserver is an Extractor that can end the addition of its indexes. CheckBuild is called after each
// existing object. After an error, no index is added.
type BuildObserver interface {
	Extractor
	CheckBuild() error
}

// extraction caches the values that the last extractor returned for one item.
type extraction struct {
	extractor Extractor
	values    [][]string
}

// extractItem extracts the values of an item. It returns false if the item is decoded or cannot be read.
func (x *extraction) extractItem(e Extractor, item Item) bool {
	o, ok := item.(*packed.Object)
	if !ok {
		return false
	}
	if x.extractor == e {
		return x.values != nil
	}
	x.extractor, x.values = e, nil
	err := o.PeekJSON(func(json []byte) (err error) {
		defer RecoverError(&err)
		x.values = e.KeysJSON(json, nil)
		return nil
	})
	return err == nil
}

// RecoverError recovers a panic of a user function on one object, and sets *err, so that no object stops its
// informer. Defer it before the call. If utilruntime.ReallyCrash is set, the panic continues.
func RecoverError(err *error) {
	if utilruntime.ReallyCrash {
		return
	}
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}

// Failure summarizes the failures of one index function.
type Failure struct {
	// Key and Err describe the first failure.
	Key string
	Err error
	// Objects is the number of objects for which the index function failed.
	Objects int
}

// Failures are failures by index name. They are collected for a whole list and reported once, because
// utilruntime.HandleError sleeps if it is called too often, which would stall the reflector.
type Failures map[string]*Failure

func (f *Failures) add(index, key string, err error) {
	if existing := (*f)[index]; existing != nil {
		existing.Objects++
		return
	}
	if *f == nil {
		*f = Failures{}
	}
	(*f)[index] = &Failure{Key: key, Err: err, Objects: 1}
}

func (f Failures) reportTo(report func(Failures)) {
	if len(f) > 0 && report != nil {
		report(f)
	}
}

// IndexNotFoundError is returned for the name of an index that does not exist.
type IndexNotFoundError struct {
	// Name is the requested name.
	Name string
}

func (e *IndexNotFoundError) Error() string { return "Index with name " + e.Name + " does not exist" }
