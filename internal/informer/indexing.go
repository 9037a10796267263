package informer

import (
	"maps"
	"slices"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// namedFunc is an index function with its name.
type namedFunc struct {
	name string
	fn   cache.IndexFunc
}

// namedFuncs evaluates several index functions in a fixed order.
type namedFuncs []namedFunc

// named returns the function of that name, or nil.
func (fs namedFuncs) named(name string) cache.IndexFunc {
	for _, f := range fs {
		if f.name == name {
			return f.fn
		}
	}
	return nil
}

// taken returns the names that are in use already.
func (fs namedFuncs) taken(indexers cache.Indexers) []string {
	var names []string
	for _, f := range fs {
		if _, clash := indexers[f.name]; clash {
			names = append(names, f.name)
		}
	}
	return names
}

func sortedFuncs(indexers cache.Indexers) namedFuncs {
	list := make(namedFuncs, 0, len(indexers))
	for _, name := range slices.Sorted(maps.Keys(indexers)) {
		list = append(list, namedFunc{name: name, fn: indexers[name]})
	}
	return list
}

// evaluate returns one list of values for each function. A function that fails yields none and is noted.
func (fs namedFuncs) evaluate(key string, object any, failures *indexFailures) [][]string {
	values := make([][]string, len(fs))
	for k, f := range fs {
		if f.fn == nil {
			continue
		}
		vs, err := f.fn(object)
		if err != nil {
			failures.note(f.name, key, err)
			continue
		}
		values[k] = vs
	}
	return values
}

// indexFailure sums up what one index function could not index.
type indexFailure struct {
	// key and err are those of the first failure.
	key string
	err error
	// objects counts them all.
	objects int
}

// indexFailures collects failures by index name: reporting every object of a large list would stall the
// reflector, because utilruntime's error handler sleeps when it is called too often.
type indexFailures map[string]*indexFailure

func (f *indexFailures) note(index, key string, err error) {
	if have := (*f)[index]; have != nil {
		have.objects++
		return
	}
	if *f == nil {
		*f = indexFailures{}
	}
	(*f)[index] = &indexFailure{key: key, err: err, objects: 1}
}

func (f indexFailures) to(report func(indexFailures)) {
	if len(f) > 0 {
		report(f)
	}
}

// currentFuncs returns the index functions in the order of the indexes, with the version they make up.
func (t *table) currentFuncs() (namedFuncs, uint32) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.funcs, t.version
}

// Prepare implements Store.
func (t *table) Prepare(objects ...Keyed) []Prepared {
	funcs, version := t.currentFuncs()
	var failures indexFailures
	prepared := make([]Prepared, len(objects))
	for i, o := range objects {
		prepared[i] = prepare(o, funcs, version, &failures)
	}
	failures.to(t.report)
	return prepared
}

// PrepareOne implements Store.
func (t *table) PrepareOne(object Keyed) Prepared {
	funcs, version := t.currentFuncs()
	var failures indexFailures
	p := prepare(object, funcs, version, &failures)
	failures.to(t.report)
	return p
}

func prepare(o Keyed, funcs namedFuncs, version uint32, failures *indexFailures) Prepared {
	return Prepared{
		Key:             o.Key,
		Item:            o.Object,
		ResourceVersion: o.ResourceVersion,
		values:          funcs.evaluate(o.Key, o.Object, failures),
		version:         version,
	}
}

// log reports the failures through utilruntime's error handlers.
func (f indexFailures) log(logger klog.Logger, objects string) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		one := f[name]
		utilruntime.HandleErrorWithLogger(logger, one.err, "Objects could not be indexed and are missing from the index",
			"index", name, "of", objects, "objects", one.objects, "firstKey", one.key)
	}
}
