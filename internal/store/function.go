package store

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// function is an index function with its name. It never changes.
type function struct {
	name string
	// id marks the function's values in those of a row. It is never used again.
	id int
	fn cache.IndexFunc
	// derived says that the only value is the namespace, which rows need not keep and bodies need not be decoded
	// for.
	derived bool
}

// newFunction recognises the index by namespace by its code address: funcs cannot be compared otherwise.
func newFunction(name string, id int, fn cache.IndexFunc) *function {
	byNamespace := reflect.ValueOf(cache.IndexFunc(cache.MetaNamespaceIndexFunc)).Pointer()
	return &function{name: name, id: id, fn: fn, derived: fn != nil && reflect.ValueOf(fn).Pointer() == byNamespace}
}

// valuesOf calls yield for each value of a row.
func (f *function) valuesOf(r *row) func(yield func(string) bool) {
	if !f.derived {
		return r.values.of(f.id)
	}
	return func(yield func(string) bool) {
		if m, err := meta.Accessor(r.item); err == nil {
			yield(m.GetNamespace())
		}
	}
}

// has reports whether value is one of a row's.
func (f *function) has(r *row, value string) bool {
	for v := range f.valuesOf(r) {
		if v == value {
			return true
		}
	}
	return false
}

// own returns a row's value for an index to keep. It is copied where it would keep a large object, or a large
// set of values, in memory after the row has gone.
func (f *function) own(value string, r *row) string {
	if f.derived || len(r.values) > 2*len(value)+32 {
		return strings.Clone(value)
	}
	return value
}

// functions are the index functions of a store, in the order in which they were added.
type functions []*function

// with appends functions by name, with ids from next on.
func (fs functions) with(indexers cache.Indexers, next int) functions {
	all := slices.Clip(fs)
	for _, name := range slices.Sorted(maps.Keys(indexers)) {
		all = append(all, newFunction(name, next, indexers[name]))
		next++
	}
	return all
}

// taken returns the names that are in use already.
func (fs functions) taken(indexers cache.Indexers) []string {
	var names []string
	for _, f := range fs {
		if _, clash := indexers[f.name]; clash {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// evaluate returns the values of an item, packed. object gives the decoded form and is called when a function
// needs it. A function that fails yields none and is noted.
func (fs functions) evaluate(key string, item Item, object func(Item) any, failures *Failures) values {
	var packed []byte
	var decoded any
	for _, f := range fs {
		switch {
		case f.fn == nil:
			continue
		case f.derived:
			if _, err := meta.Accessor(item); err != nil {
				failures.note(f.name, key, err)
			}
			continue
		case decoded == nil:
			decoded = object(item)
		}
		list, err := f.fn(decoded)
		if err != nil {
			failures.note(f.name, key, err)
			continue
		}
		packed = appendValues(packed, f.id, distinct(list))
	}
	return values(packed)
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
