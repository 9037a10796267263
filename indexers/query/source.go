package query

import "time"

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
	// Index returns the index of a name.
	Index(name string) (Index, bool)
	// IndexNames returns the names of all indexes.
	IndexNames() []string
	// Drops reports whether items may lack a field that their objects have; see
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
func (s Freshness) Age(now time.Time) time.Duration {
	if s.LastContact.IsZero() {
		return 0
	}
	return max(now.Sub(s.LastContact), 0)
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
