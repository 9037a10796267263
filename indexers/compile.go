package indexers

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Functions are the compiled indexes of one resource. They may be used from any number of
// goroutines, and by several informers, whose statistics then add up.
type Functions struct {
	functions []*function
}

// function is one index and what it counted.
type function struct {
	index *Index
	counters
}

// Compile makes index functions of a resource of a parsed config.
func Compile(r *Resource) *Functions {
	f := &Functions{}
	for _, index := range r.Indexes {
		f.functions = append(f.functions, &function{index: index})
	}
	return f
}

// Indexers gives the functions by the names of their indexes, for the AddIndexers of any informer
// and for cache.NewIndexer. Each call gives a new map.
//
// The functions take unstructured objects, and maps as decoding JSON gives them. Typed objects are
// converted on each call, which is slow. They never return an error and never panic, because a store
// of client-go panics on an error: an object that cannot be used is in no index, and counted. They
// only read the object. Each value is given once, in the order of the path.
func (f *Functions) Indexers() cache.Indexers {
	out := make(cache.Indexers, len(f.functions))
	for _, fn := range f.functions {
		out[fn.index.Name] = fn.values
	}
	return out
}

// Stats gives what each index met so far, in the order of the config. The counters of one index are
// read one after the other, so they may differ by calls that are under way.
func (f *Functions) Stats() []Stats {
	out := make([]Stats, len(f.functions))
	for i, fn := range f.functions {
		out[i] = fn.stats(fn.index.Name)
	}
	return out
}

// values is the cache.IndexFunc.
func (f *function) values(obj any) (values []string, err error) {
	defer func() {
		// A typed object with methods of its own can do anything when it is converted.
		if recover() != nil {
			f.failed.Add(1)
			values, err = nil, nil
		}
	}()
	f.seen.Add(1)
	content, ok := contentOf(obj)
	if !ok {
		f.failed.Add(1)
		return nil, nil
	}
	if f.index.when != nil && !f.index.when.Match(content) {
		f.when.Add(1)
		return nil, nil
	}
	c := collecting{function: f, object: content}
	c.collect()
	if len(c.found) > 0 {
		f.matched.Add(1)
		f.counters.values.Add(uint64(len(c.found)))
	}
	return c.found, nil
}

// contentOf gives an object as decoded JSON.
func contentOf(obj any) (map[string]any, bool) {
	switch o := obj.(type) {
	case nil:
		return nil, false
	case map[string]any:
		return o, o != nil
	case cache.DeletedFinalStateUnknown:
		return contentOf(o.Obj)
	case interface{ UnstructuredContent() map[string]any }:
		return o.UnstructuredContent(), true
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	return content, err == nil
}
