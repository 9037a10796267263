package query

import "time"

// Source gives the present content of a cache.
type Source interface {
	// Snapshot returns the content at one moment, which must not change afterwards. It is called once for
	// each query.
	Snapshot() Snapshot
}

// Snapshot is the content of a cache at one moment, with all its indexes. It is safe for concurrent use.
type Snapshot interface {
	// Stamp says what the content is worth.
	Stamp() Stamp
	// Len counts the objects.
	Len() int
	// Get returns the item of a key, which is namespace/name, or the name of what has no namespace.
	Get(key string) (item any, ok bool)
	// All calls yield for each object, in any order, until it returns false.
	All(yield func(key string, item any) bool)
	// Index returns the index of that name.
	Index(name string) (Index, bool)
	// IndexNames lists the indexes.
	IndexNames() []string
}

// Stamp says how recent a snapshot is.
type Stamp struct {
	// ResourceVersion is what the content is at, or empty while it is not known.
	ResourceVersion string
	// Contact is when the server last confirmed the content; zero while it never has, or where nobody knows.
	Contact time.Time
	// Synced is false while the content is not complete. Of an informer with a shard, that is what is in the
	// shard.
	Synced bool
	// Stale is set while the content may be behind although it was complete once.
	Stale bool
	// Shard says which part of the objects the content is, where it is no more than a shard: its key and its
	// ranges. Counts, groups and values are of that part, and what an index declares unique is so within it.
	Shard string
}

// Age is how long ago the server last confirmed the content; 0 when it is not known.
func (s Stamp) Age(now time.Time) time.Duration {
	if s.Contact.IsZero() {
		return 0
	}
	return max(now.Sub(s.Contact), 0)
}

// Index finds objects by keys: those that indexers.Index.Key gives, or whatever the index function gave.
type Index interface {
	// Len counts the different keys.
	Len() int
	// Count counts the objects with a key.
	Count(key string) int
	// Has reports whether the object is among those with a key.
	Has(key, object string) bool
	// Objects calls yield for each object with a key, in any order, until it returns false.
	Objects(key string, yield func(object string, item any) bool)
	// Keys calls yield for each key from one on and before another, in their order or the opposite, with the
	// number of objects that have it, until it returns false. An empty text is no bound.
	Keys(from, to string, descending bool, yield func(key string, count int) bool)
}
