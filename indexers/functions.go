package indexers

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/naming"
)

// Functions are the compiled indexes of one resource. They are safe for concurrent use and can be shared by
// informers; their statistics are added up.
type Functions struct {
	functions  []*indexFunction
	extraction extraction
	build      atomic.Pointer[build] // nil unless an addition is limited
}

type indexFunction struct {
	index *Index
	counters
	incompleteReason atomic.Pointer[error] // why the index is incomplete; see LimitBuild
}

// Compile compiles the index functions of a resource.
func Compile(r *Resource) *Functions { return CompileIndexes(r.Indexes...) }

// CompileIndexes works like Compile for some indexes.
func CompileIndexes(indexes ...*Index) *Functions {
	f := &Functions{functions: naming.Map(indexes,
		func(index *Index) *indexFunction { return &indexFunction{index: index} })}
	f.extraction = newExtraction(f.functions)
	return f
}

// Indexes returns the indexes in the order of the config.
func (f *Functions) Indexes() []*Index {
	return naming.Map(f.functions, func(fn *indexFunction) *Index { return fn.index })
}

// Names returns the names of the indexes in the order of the config.
func (f *Functions) Names() []string {
	return naming.Texts(f.functions, func(fn *indexFunction) string { return fn.index.Name })
}

// Ordered reports whether a cache should sort the keys of index i: sorted indexes, and composite ones, which
// can be queried by their first parts.
func (f *Functions) Ordered(i int) bool {
	index := f.functions[i].index
	return index.Sorted || index.Composite()
}

// Indexers returns a new map of index functions by name, for AddIndexers of any informer and for
// cache.NewIndexer. The functions return the keys that [Index.Key] returns, each once, in the order of the
// path.
//
// They accept unstructured objects and decoded JSON maps, and typed objects, which are converted on each call
// and therefore slow. They never return an error or panic, because client-go's store panics on an error: an
// unusable object is in no index and is counted. They do not change objects.
func (f *Functions) Indexers() cache.Indexers {
	out := make(cache.Indexers, len(f.functions))
	for _, fn := range f.functions {
		out[fn.index.Name] = fn.keys
	}
	return out
}

// Keys returns the keys of an object for each index, in the order of [Functions.Indexes].
func (f *Functions) Keys(obj any) [][]string { return f.decodedKeys(obj, false) }

func (f *Functions) decodedKeys(obj any, keepRepeated bool) [][]string {
	return naming.Map(f.functions, func(fn *indexFunction) []string { return fn.collect(obj, keepRepeated) })
}

// KeysJSON appends the keys of a document for index i to keys[i], in one pass for all indexes. They equal the
// keys of the decoded object. keys is extended to the number of indexes. An invalid document is in no index
// and is counted. The keys do not reference the document.
func (f *Functions) KeysJSON(json []byte, keys [][]string) [][]string {
	return f.keysJSON(json, keys, false)
}

func (f *Functions) keysJSON(json []byte, keys [][]string, keepRepeated bool) [][]string {
	if missing := len(f.functions) - len(keys); missing > 0 {
		keys = append(keys, make([][]string, missing)...)
	}
	state := extractionPool.Get().(*extractionState)
	defer state.release()
	state.values = resetLists(state.values, f.extraction.set.Len())
	state.document, state.keepRepeated, state.object = json, keepRepeated, nil
	err := f.extraction.set.FindJSON(json, state.addResult)
	build := f.build.Load()
	for i, fn := range f.functions {
		if err != nil {
			fn.countInvalid()
			continue
		}
		if fn.incompleteReason.Load() != nil {
			continue
		}
		var start time.Time
		if build != nil {
			start = time.Now()
		}
		state.reset(fn, keys[i])
		state.collect(f.extraction.firstExpressions[i])
		if keys[i] = state.keysFound; build != nil {
			build.addKeys(i, keys[i], time.Since(start))
		}
	}
	if build != nil {
		f.refuseCostly(build)
	}
	return keys
}

// Stats returns the statistics of each index in the order of the config. It reads each counter separately,
// so concurrent calls can be in some counters and not yet in others.
func (f *Functions) Stats() []Stats { return naming.Map(f.functions, (*indexFunction).stats) }

// Dropped returns the number of values that the named index has dropped because of maxValues or
// maxValueBytes, or because a CEL expression failed. It returns 0 for an unknown index.
func (f *Functions) Dropped(name string) uint64 {
	for _, fn := range f.functions {
		if fn.index.Name == name {
			return fn.overLimit.Load() + fn.failedExpressions.Load()
		}
	}
	return 0
}

// Skipped returns the number of values that the named index has left out because of their type or a limit, or
// because a CEL expression failed; 0 if there is no such index.
func (f *Functions) Skipped(name string) uint64 {
	for _, fn := range f.functions {
		if fn.index.Name == name {
			return fn.mistyped.Load() + fn.overLimit.Load() + fn.failedExpressions.Load()
		}
	}
	return 0
}

func (f *indexFunction) keys(obj any) ([]string, error) { return f.collect(obj, false), nil }

// collect returns the keys of an object, without duplicates unless keepRepeated is set.
func (f *indexFunction) collect(obj any, keepRepeated bool) (keys []string) {
	defer func() {
		// converting a typed object calls its own methods, which can panic
		if recover() != nil {
			f.countInvalid()
			keys = nil
		}
	}()
	content, ok := decodedContent(obj)
	if !ok {
		f.countInvalid()
		return nil
	}
	c := collector{root: element{decoded: content}, keepRepeated: keepRepeated}
	c.reset(f, nil)
	c.collectDecoded()
	return slices.Clip(c.keysFound)
}

// countInvalid counts a call with an unusable object.
func (c *counters) countInvalid() {
	c.calls.Add(1)
	c.failed.Add(1)
}

func decodedContent(obj any) (map[string]any, bool) {
	switch o := obj.(type) {
	case nil:
		return nil, false
	case map[string]any:
		return o, o != nil
	case cache.DeletedFinalStateUnknown:
		return decodedContent(o.Obj)
	case interface{ UnstructuredContent() map[string]any }:
		return o.UnstructuredContent(), true
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	return content, err == nil
}

const maxReportedKeys = 10

// Stats are the statistics of an index function. They count calls, not existing objects: an informer calls
// the function when it adds or deletes an object, and twice when an object changes.
type Stats struct {
	Index string
	// Seen is the number of calls with an object.
	Seen uint64
	// Matched is the number of calls that returned a value; Values is the number of values.
	Matched, Values uint64
	// SkippedWhen is the number of objects for which "when" is false.
	SkippedWhen uint64
	// SkippedMissing is the number of missing values without replacement.
	SkippedMissing uint64
	// SkippedType is the number of values that do not have the type of the index. They include lists, maps
	// and the text [Null].
	SkippedType uint64
	// SkippedLimit is the number of values beyond maxValues, longer than maxValueBytes, or longer than 64 KiB
	// before a regex.
	SkippedLimit uint64
	// Failed is the number of calls with something else than a Kubernetes object, and of failed CEL
	// expressions.
	Failed uint64
	// Reported holds the keys, namespace/name, of the first ten objects whose CEL expression failed, or
	// that have no value in an index with "missing: Report".
	Reported []string
}

// String returns a summary such as "issuer: matched 0 of 120; skipped 3 values for their type".
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: matched %d of %d", s.Index, s.Matched, s.Seen)
	for _, skipped := range []struct {
		n     uint64
		cause string
	}{
		{s.SkippedMissing, "skipped %d missing values"}, {s.SkippedType, "skipped %d values for their type"},
		{s.SkippedLimit, "skipped %d values beyond a limit"}, {s.SkippedWhen, "%d objects are not meant"},
		{s.Failed, "%d calls failed"},
	} {
		if skipped.n > 0 {
			fmt.Fprintf(&b, "; "+skipped.cause, skipped.n)
		}
	}
	return b.String()
}

type counters struct {
	calls, matched, values, notSelected, missingValues, mistyped, overLimit, failed,
	failedExpressions atomic.Uint64
	reported struct {
		sync.Mutex
		keys []string
	}
}

// report remembers the key of an object without a value, if there is room.
func (c *counters) report(key func() string) {
	c.reported.Lock()
	full := len(c.reported.keys) >= maxReportedKeys
	c.reported.Unlock()
	if full {
		return
	}
	k := key()
	c.reported.Lock()
	defer c.reported.Unlock()
	if len(c.reported.keys) < maxReportedKeys && !slices.Contains(c.reported.keys, k) {
		c.reported.keys = append(c.reported.keys, k)
	}
}

func (f *indexFunction) stats() Stats {
	f.reported.Lock()
	reported := slices.Clone(f.reported.keys)
	f.reported.Unlock()
	return Stats{
		Index: f.index.Name, Seen: f.calls.Load(), Matched: f.matched.Load(), Values: f.values.Load(),
		SkippedWhen: f.notSelected.Load(), SkippedMissing: f.missingValues.Load(),
		SkippedType:  f.mistyped.Load(),
		SkippedLimit: f.overLimit.Load(), Failed: f.failed.Load() + f.failedExpressions.Load(),
		Reported: reported,
	}
}
