package query

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
)

// ForIndexer returns a source over a client-go indexer, such as informer.GetIndexer(). Such an indexer has no
// snapshots: a query can see some of the writes that happen while it runs. Freshness has neither a resource
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

func (s indexerSnapshot) IndexNames() []string {
	return sets.List(sets.KeySet(s.GetIndexers()))
}

func (s indexerSnapshot) Index(name string) (Index, bool) {
	if s.GetIndexers()[name] == nil {
		return nil, false
	}
	return &listedIndex{indexer: s.Indexer, name: name}, true
}

type listedIndex struct {
	indexer cache.Indexer
	name    string

	mu struct {
		sync.Mutex
		keys    []string // sorted
		objects map[string]sets.Set[string]
	}
}

func (x *listedIndex) Len() int { return len(x.listed()) }

func (x *listedIndex) listed() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.keys == nil {
		x.mu.keys = x.indexer.ListIndexFuncValues(x.name)
		slices.Sort(x.mu.keys)
	}
	return x.mu.keys
}

func (x *listedIndex) objectsWithKey(key string) sets.Set[string] {
	x.mu.Lock()
	defer x.mu.Unlock()
	if set, ok := x.mu.objects[key]; ok {
		return set
	}
	objects, err := x.indexer.IndexKeys(x.name, key)
	if err != nil { // the index has been removed
		return nil
	}
	set := sets.New(objects...)
	if x.mu.objects == nil {
		x.mu.objects = map[string]sets.Set[string]{}
	}
	x.mu.objects[key] = set
	return set
}

func (x *listedIndex) Count(key string) int { return len(x.objectsWithKey(key)) }

func (x *listedIndex) Has(key, object string) bool { return x.objectsWithKey(key).Has(object) }

func (x *listedIndex) Objects(key string, yield func(object string, item any) bool) {
	for object := range x.objectsWithKey(key) {
		item, ok, err := x.indexer.GetByKey(object)
		if ok && err == nil && !yield(object, item) {
			return
		}
	}
}

func (x *listedIndex) Keys(from, to string, descending bool, yield func(key string, count int) bool) {
	keys := x.listed()
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
		if n := x.Count(key); n > 0 && !yield(key, n) {
			return
		}
	}
}
