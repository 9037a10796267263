package query

import (
	"slices"
	"sync"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
)

// Source provides the current content of a cache.
type Source interface {
	// Snapshot returns the current content, which must not change afterwards. It is called once for each
	// query.
	Snapshot() Snapshot
}

// Snapshot is the content of a cache at one moment with all its indexes. It is safe for concurrent use.
type Snapshot interface {
	// Freshness returns how recent the content is.
	Freshness() Freshness
	// Len returns the number of objects.
	Len() int
	// Get returns the item of a key, which is namespace/name, or the name of a cluster-scoped object.
	Get(key string) (item any, ok bool)
	// All calls yield for each object, in any order, until it returns false.
	All(yield func(key string, item any) bool)
	// Index returns the index with a name.
	Index(name string) (Index, bool)
	// IndexNames returns the names of all indexes.
	IndexNames() []string
	// Drops reports whether the cache may have removed a field from its items; see
	// dynamicinformer.Informer.Drops. Queries that read such a field fail.
	Drops(field string) bool
}

// Freshness describes how recent a snapshot is.
type Freshness struct {
	// ResourceVersion is the resource version of the content; empty if unknown.
	ResourceVersion string
	// LastContact is the time at which the server last confirmed the content; zero if it never has or if that
	// is unknown.
	LastContact time.Time
	// Synced reports whether the content, or its shard, is complete.
	Synced bool
	// Stale reports whether content that was complete once may be behind now.
	Stale bool
	// Shard is the key and the ranges of the shard that the content is limited to; empty without a shard.
	// Counts, groups and values cover the shard only.
	Shard string
}

// Age returns the time since the server last confirmed the content; 0 if unknown.
func (f Freshness) Age(now time.Time) time.Duration {
	if f.LastContact.IsZero() {
		return 0
	}
	return max(now.Sub(f.LastContact), 0)
}

// Index finds objects by keys, as returned by indexers.Index.Key or an index function.
type Index interface {
	// Len returns the number of distinct keys.
	Len() int
	// Count returns the number of objects with a key.
	Count(key string) int
	// Has reports whether an object has a key.
	Has(key, object string) bool
	// Objects calls yield for each object with a key, in any order, until it returns false.
	Objects(key string, yield func(object string, item any) bool)
	// Keys calls yield for each key, from <= key < to, with the number of its objects, until it returns
	// false. Keys are sorted, in reverse if descending. An empty bound is open.
	Keys(from, to string, descending bool, yield func(key string, count int) bool)
}

// ForIndexer returns a source over a client-go indexer, such as informer.GetIndexer(). Such an indexer has
// no snapshots: a running query can see some of the concurrent writes. Freshness has neither a resource
// version nor a time.
//
// functions, which are optional, are the index functions of the indexer. With them, plans warn about values
// that exceeded a limit.
func ForIndexer(indexer cache.Indexer, functions ...*indexers.Functions) Source {
	return indexerSource{indexer, functions}
}

type indexerSource struct {
	cache.Indexer
	functions []*indexers.Functions
}

func (s indexerSource) Snapshot() Snapshot { return indexerSnapshot(s) }

type indexerSnapshot indexerSource

func (s indexerSnapshot) Dropped(index string) (dropped uint64) {
	for _, f := range s.functions {
		dropped += f.Dropped(index)
	}
	return dropped
}

// Drops returns false: an indexer does not declare which fields its objects lack.
func (s indexerSnapshot) Drops(string) bool { return false }

func (s indexerSnapshot) Freshness() Freshness { return Freshness{Synced: true} }

func (s indexerSnapshot) Len() int { return len(s.ListKeys()) }

func (s indexerSnapshot) Get(key string) (any, bool) {
	item, ok, err := s.GetByKey(key)
	return item, ok && err == nil
}

func (s indexerSnapshot) All(yield func(key string, item any) bool) {
	for _, item := range s.List() {
		key, err := cache.MetaNamespaceKeyFunc(item)
		if err == nil && !yield(key, item) {
			return
		}
	}
}

func (s indexerSnapshot) IndexNames() []string { return sets.List(sets.KeySet(s.GetIndexers())) }

func (s indexerSnapshot) Index(name string) (Index, bool) {
	if s.GetIndexers()[name] == nil {
		return nil, false
	}
	return &indexerIndex{indexer: s.Indexer, name: name}, true
}

type indexerIndex struct {
	indexer cache.Indexer
	name    string

	mu struct {
		sync.Mutex
		keys    []string // sorted
		objects map[string]sets.Set[string]
	}
}

func (l *indexerIndex) Len() int { return len(l.sortedKeys()) }

func (l *indexerIndex) sortedKeys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.keys == nil {
		l.mu.keys = l.indexer.ListIndexFuncValues(l.name)
		slices.Sort(l.mu.keys)
	}
	return l.mu.keys
}

func (l *indexerIndex) objectsWithKey(key string) sets.Set[string] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set, ok := l.mu.objects[key]; ok {
		return set
	}
	objects, err := l.indexer.IndexKeys(l.name, key)
	if err != nil { // the index has been removed
		return nil
	}
	set := sets.New(objects...)
	if l.mu.objects == nil {
		l.mu.objects = map[string]sets.Set[string]{}
	}
	l.mu.objects[key] = set
	return set
}

func (l *indexerIndex) Count(key string) int { return len(l.objectsWithKey(key)) }

func (l *indexerIndex) Has(key, object string) bool { return l.objectsWithKey(key).Has(object) }

func (l *indexerIndex) Objects(key string, yield func(object string, item any) bool) {
	for object := range l.objectsWithKey(key) {
		item, ok, err := l.indexer.GetByKey(object)
		if ok && err == nil && !yield(object, item) {
			return
		}
	}
}

func (l *indexerIndex) Keys(from, to string, descending bool, yield func(key string, count int) bool) {
	rangeKeys(l.sortedKeys(), from, to, descending, func(key string) bool {
		n := l.Count(key)
		return n == 0 || yield(key, n)
	})
}

// rangeKeys calls yield for the keys of a sorted list as Index.Keys does.
func rangeKeys(keys []string, from, to string, descending bool, yield func(key string) bool) {
	low, _ := slices.BinarySearch(keys, from)
	high := len(keys)
	if to != "" {
		high, _ = slices.BinarySearch(keys, to)
	}
	for i := range max(high-low, 0) {
		key := keys[low+i]
		if descending {
			key = keys[high-1-i]
		}
		if !yield(key) {
			return
		}
	}
}

// MetricSource returns the metrics of a type with a snapshot of its cache, for indexers.ReadMetrics. If the
// cache drops a field that a metric reads, the metric has no series and the source is stale.
func MetricSource(gvr runtimeschema.GroupVersionResource, metrics []*indexers.Metric,
	snapshot Snapshot) indexers.MetricSource {
	freshness := snapshot.Freshness()
	source := indexers.MetricSource{Type: gvr, Synced: freshness.Synced, Stale: freshness.Stale,
		Index: func(name string) (indexers.MetricIndex, bool) { return snapshot.Index(name) },
	}
	for _, m := range metrics {
		_, exists := snapshot.Index(m.Index.Name)
		if !exists || slices.ContainsFunc(m.Index.Fields(), snapshot.Drops) {
			source.Stale = true
			continue
		}
		source.Metrics = append(source.Metrics, m)
	}
	if counting, ok := snapshot.(interface{ Skipped(index string) uint64 }); ok {
		source.Skipped = counting.Skipped
	}
	return source
}
