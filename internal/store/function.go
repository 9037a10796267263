package store

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// function is an index function with its name. Nothing but gone ever changes.
type function struct {
	name string
	// id marks the function's values in those of a row. It is never used again.
	id int
	fn cache.IndexFunc
	// derived says that the only value is the namespace, which rows need not keep and bodies need not be
	// decoded for.
	derived bool
	// extractor, if there is one, has the values of packed objects under number at, without decoding them.
	extractor Extractor
	at        int
	// sorted is set where the index keeps its values in order.
	sorted bool
	// gone is set before rows lose the values of an index that has been removed: what a reader of an earlier
	// snapshot does not find in a row counts only while it is not set.
	gone atomic.Bool
}

// newFunction recognises the index by namespace by its code address: funcs cannot be compared otherwise.
func newFunction(name string, id int, fn cache.IndexFunc) *function {
	byNamespace := reflect.ValueOf(cache.IndexFunc(cache.MetaNamespaceIndexFunc)).Pointer()
	return &function{name: name, id: id, fn: fn, derived: fn != nil &&
		reflect.ValueOf(fn).Pointer() == byNamespace}
}

// valuesOf returns a cursor before the first value of a row.
func (f *function) valuesOf(r *row) cursor {
	if !f.derived {
		return r.values().of(f.id)
	}
	if o := r.object.Load(); o != nil {
		return cursor{value: o.Namespace(), single: true}
	}
	m, err := meta.Accessor(r.other)
	if err != nil {
		return cursor{}
	}
	return cursor{value: m.GetNamespace(), single: true}
}

// has reports whether value is one of a row's.
func (f *function) has(r *row, value string) bool {
	for c := f.valuesOf(r); c.next(); {
		if c.value == value {
			return true
		}
	}
	return false
}

// own returns a row's value for an index to keep. It is copied where it would keep a large object, or a large
// set of values, in memory after the row has gone.
func (f *function) own(value string, r *row) string {
	if f.derived || len(r.values()) > 2*len(value)+32 {
		return strings.Clone(value)
	}
	return value
}

// functions are the index functions of a store, in the order in which they were added.
type functions []*function

// addition makes functions with ids from next on.
type addition func(next int) functions

// named adds functions by name.
func named(indexers cache.Indexers) addition {
	return func(next int) functions {
		var fs functions
		for _, name := range slices.Sorted(maps.Keys(indexers)) {
			fs = append(fs, newFunction(name, next+len(fs), indexers[name]))
		}
		return fs
	}
}

// taken returns the names that are in use already, sorted.
func (fs functions) taken(added functions) []string {
	var names []string
	for _, f := range added {
		if slices.ContainsFunc(fs, func(have *function) bool { return have.name == f.name }) {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// evaluate returns the values of an item, packed. object gives the decoded form and is called when a function
// needs it. A function that fails yields none and is noted.
func (fs functions) evaluate(key string, item Item, object func(Item) any, failures *Failures) []byte {
	var packed []byte
	var decoded any
	var extracted extraction
	for _, f := range fs {
		switch {
		case f.fn == nil:
			continue
		case f.extractor != nil && extracted.of(f.extractor, item):
			packed = appendValues(packed, f.id, distinct(extracted.values[f.at]))
			continue
		case f.derived:
			if _, err := meta.Accessor(item); err != nil {
				failures.note(f.name, key, err)
			}
			continue
		case decoded == nil:
			decoded = object(item)
		}
		list, err := f.call(decoded)
		if err != nil {
			failures.note(f.name, key, err)
			continue
		}
		packed = appendValues(packed, f.id, distinct(list))
	}
	return packed
}

// call returns the values of an object.
func (f *function) call(object any) (values []string, err error) {
	defer Recover(&err)
	return f.fn(object)
}

// distinct returns a list without repetitions.
func distinct(list []string) []string {
	if len(list) < 2 {
		return list
	}
	list = slices.Clone(list) // which is the function's, perhaps a part of the object
	slices.Sort(list)
	return slices.Compact(list)
}
