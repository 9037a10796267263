package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stats tell what the cache of an informer occupies, and what has happened in it. Bytes are of heap, as allocated. Of packed
// objects and of indexes they are exact to a few percent, of decoded objects they are extrapolated from a sample.
type Stats struct {
	// GVR is the type.
	GVR schema.GroupVersionResource
	// View says which objects of the type these are, as Status.View does; empty for all in their usual form.
	View string
	// Mode is how objects are kept.
	Mode StorageMode
	// Objects counts the objects, Compressed those of them that are compressed.
	Objects, Compressed int
	// ObjectBytes are the objects. Copies that were decoded for readers are not counted: the garbage collector
	// takes them when it needs to.
	ObjectBytes int64
	// CompressedBytes are those of ObjectBytes that are compressed objects.
	CompressedBytes int64
	// TableBytes is what finds objects by their keys.
	TableBytes int64
	// Indexes are in the order in which they were added.
	Indexes []IndexStats
	// Hits and Misses count how often a packed object was read while a decoded copy of it was in memory, and
	// how often it had to be decoded.
	Hits, Misses int64
	// ShardDropped counts the objects that came and were left out on arrival, because they are not in the shard (see
	// ResourceOptions.Shard): what a server sends in vain that does not filter. Zero where everything is followed.
	ShardDropped int64
	// Events counts what has happened in the cache since the informer was made.
	Events EventStats
	// ListDuration is how long the last list took, as Status.ListDuration; zero before the first.
	ListDuration time.Duration
}

// EventStats count what has happened in a cache. The numbers only grow, until the informer is made anew.
type EventStats struct {
	// Adds counts objects that appeared, those of the initial list included; Updates changes of objects that were there;
	// Deletes objects that went. What brings nothing new, as resyncs and lists often do, is not counted.
	Adds, Updates, Deletes int64
	// Relists counts lists after the first: of a watch that could not go on where it ended, for example. Of a view of
	// several namespaces the list of each counts. That a type has come back is not one.
	Relists int64
	// Departures counts objects that left the shard (see ResourceOptions.Shard). They are not among Deletes.
	Departures int64
}

// IndexStats tell what an index occupies.
type IndexStats struct {
	Name string
	// Values counts the different values. Entries counts the objects under each, so that an object with two
	// values counts twice.
	Values, Entries int
	Bytes           int64
}

// Bytes is the sum of all parts.
func (s Stats) Bytes() int64 {
	sum := s.ObjectBytes + s.TableBytes
	for _, x := range s.Indexes {
		sum += x.Bytes
	}
	return sum
}

// Stats tells what the cache occupies and what has happened in it. It looks at every object, which takes some 10 ms for
// 100,000, and keeps neither readers nor the informer waiting.
func (i *Informer) Stats() Stats {
	inside := i.core.Stats()
	stats := Stats{
		GVR: i.gvr, Mode: i.options.Storage.effective(), Objects: inside.Objects, Compressed: inside.Compressed,
		ObjectBytes: inside.ObjectBytes, CompressedBytes: inside.CompressedBytes, TableBytes: inside.TableBytes, Hits: inside.Hits, Misses: inside.Misses,
		View: i.options.describe(), Events: EventStats(i.core.Events()), ListDuration: i.Status().ListDuration,
	}
	if i.shard != nil {
		stats.ShardDropped = i.shard.Dropped()
	}
	for _, x := range inside.Indexes {
		stats.Indexes = append(stats.Indexes, IndexStats{Name: x.Name, Values: x.Values, Entries: x.Entries, Bytes: x.Bytes})
	}
	return stats
}

// Stats tells what the cache of each informer occupies, ordered by group, resource, version and view. See Informer.Stats.
func (f *Factory) Stats() []Stats {
	all := make([]Stats, 0)
	for _, e := range f.entries() {
		all = append(all, e.informer.Stats())
	}
	return all
}
