package indexers

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Functions are the compiled indexes of one resource. They may be used from any number of
// goroutines, and by several informers, whose statistics then add up.
type Functions struct {
	functions  []*function
	extraction extraction
}

// function is one index and what it counted.
type function struct {
	index *Index
	counters
}

// Compile makes index functions of a resource of a parsed config.
func Compile(r *Resource) *Functions { return CompileIndexes(r.Indexes...) }

// CompileIndexes is Compile for some indexes of a resource, such as those that are new.
func CompileIndexes(indexes ...*Index) *Functions {
	f := &Functions{}
	for _, index := range indexes {
		f.functions = append(f.functions, &function{index: index})
	}
	f.extraction = newExtraction(f.functions)
	return f
}

// Indexes gives the indexes, in the order of the config.
func (f *Functions) Indexes() []*Index {
	out := make([]*Index, len(f.functions))
	for i, fn := range f.functions {
		out[i] = fn.index
	}
	return out
}

// Names gives the names of the indexes, in the order of the config.
func (f *Functions) Names() []string {
	out := make([]string, len(f.functions))
	for i, fn := range f.functions {
		out[i] = fn.index.Name
	}
	return out
}

// Ordered reports whether a cache should keep index number i in the order of its keys: sorted indexes, and
// composite ones, whose first parts can be asked for.
func (f *Functions) Ordered(i int) bool {
	index := f.functions[i].index
	return index.Sorted || index.Composite()
}

// Indexers gives the functions by the names of their indexes, for the AddIndexers of any informer
// and for cache.NewIndexer. Each call gives a new map. The values that the functions give are what
// [Index.Key] gives.
//
// The functions take unstructured objects, and maps as decoding JSON gives them. Typed objects are
// converted on each call, which is slow. They never return an error and never panic, because a store
// of client-go panics on an error: an object that cannot be used is in no index, and counted. They
// only read the object. Each value is given once, in the order of the path.
func (f *Functions) Indexers() cache.Indexers {
	out := make(cache.Indexers, len(f.functions))
	for _, fn := range f.functions {
		out[fn.index.Name] = fn.keys
	}
	return out
}

// Keys gives the keys of an object for each index, in the order of Indexes, as the functions of
// [Functions.Indexers] give them.
func (f *Functions) Keys(obj any) [][]string { return f.decodedKeys(obj, false) }

func (f *Functions) decodedKeys(obj any, repeated bool) [][]string {
	out := make([][]string, len(f.functions))
	for i, fn := range f.functions {
		out[i], _ = fn.collect(obj, repeated)
	}
	return out
}

// KeysJSON appends to keys[i] what index number i of [Functions.Indexes] has for the object that the
// document holds, all in one pass over it: the same as its function gives for the decoded object.
// keys is made longer where it is too short for the indexes. A document that is not valid JSON is in
// no index, and counted. The keys do not refer to the document.
func (f *Functions) KeysJSON(json []byte, keys [][]string) [][]string {
	return f.keysJSON(json, keys, false)
}

func (f *Functions) keysJSON(json []byte, keys [][]string, repeated bool) [][]string {
	if missing := len(f.functions) - len(keys); missing > 0 {
		keys = append(keys, make([][]string, missing)...)
	}
	found := findingsPool.Get().(*findings)
	defer found.release()
	found.values = room(found.values, f.extraction.set.Len())
	found.document, found.repeated = json, repeated
	err := f.extraction.set.FindJSON(json, found.note)
	for i, fn := range f.functions {
		if err != nil {
			fn.seen.Add(1)
			fn.failed.Add(1)
			continue
		}
		found.begin(fn, keys[i])
		found.collect(f.extraction.first[i])
		keys[i] = found.found
	}
	return keys
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

// Dropped counts the values that the index of a name has left out because of maxValues or maxValueBytes; 0
// where there is no such index.
func (f *Functions) Dropped(name string) uint64 {
	for _, fn := range f.functions {
		if fn.index.Name == name {
			return fn.limit.Load()
		}
	}
	return 0
}

// keys is the cache.IndexFunc.
func (f *function) keys(obj any) ([]string, error) { return f.collect(obj, false) }

// collect returns the keys of an object, each once or as often as it is found.
func (f *function) collect(obj any, repeated bool) (keys []string, err error) {
	defer func() {
		// A typed object with methods of its own can do anything when it is converted.
		if recover() != nil {
			f.seen.Add(1)
			f.failed.Add(1)
			keys, err = nil, nil
		}
	}()
	content, ok := contentOf(obj)
	if !ok {
		f.seen.Add(1)
		f.failed.Add(1)
		return nil, nil
	}
	c := collecting{object: content, repeated: repeated}
	c.begin(f, nil)
	c.decoded()
	return slices.Clip(c.found), nil
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
