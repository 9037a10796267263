package status

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Metrics are the monitoring figures of the informers of one type with equal Status.Options. Their cost does
// not depend on the number of objects, and they block neither readers nor writers. Stats has more detail
// about memory, at a cost proportional to the cache.
//
// Informers that differ only in their transform have equal Status.Options, and one Metrics with the sum.
type Metrics struct {
	// GVR is the type, and Options describes the informer's options, as Status.Options.
	GVR     schema.GroupVersionResource
	Options string
	// Status has the status of each informer: usually one; several if informers have equal Options, or if
	// an informer is still stopping while its successor has started.
	Status []Status
	// Objects is the number of objects, Compressed the number of compressed ones.
	Objects, Compressed int
	// ObjectBytes, TableBytes and IndexBytes are as in Stats; IndexBytes is the sum over all indexes. The
	// figures of packed objects are exact. The others are estimates, usually within ten percent.
	ObjectBytes, TableBytes, IndexBytes int64
	// CompressedBytes is the part of ObjectBytes in compressed objects.
	CompressedBytes int64
	// Indexes are in the order in which they were added.
	Indexes []IndexMetrics
	// Handlers are the event handlers of the running informers, also of subscriptions.
	Handlers []Handler
	// Persistence describes each informer that persists its objects.
	Persistence []Persistence
	// Counters continue when the last handle is released and the type is acquired again.
	Counters
}

// IndexMetrics are the figures of an index: see IndexStats.
type IndexMetrics struct {
	Name            string
	Values, Entries int
}

// Counters count events since the first informer of a type with these Options. They only grow.
type Counters struct {
	// Adds, Updates and Deletes are as in EventStats.
	Adds, Updates, Deletes int64
	// Relists is the number of relists by reason.
	Relists Relists
	// Verifications counts the comparisons with the server by result; see ResourceOptions.Verify.
	Verifications Verifications
	// Requests is the number of requests by verb: "list", "watch", or "watch-list" for a watch that begins
	// with a list. Each page of a list is a request.
	Requests map[string]int64
	// Failures counts failed requests and broken watches: calls of Listener.RequestFailed, and each 429.
	Failures map[RequestFailureKind]int64
	// Lists is the number of completed lists, including initial events of watch-lists. ListTime is the sum
	// of their durations.
	Lists    int64
	ListTime time.Duration
	// Hits and Misses are as in Stats.
	Hits, Misses int64
	// Saves and SaveFailures are as Saves and Failures in Persistence.
	Saves, SaveFailures int64
}

// Verifications counts comparisons of a cache with the server by result.
type Verifications struct{ Equal, Diverged, Failed int64 }

// Add adds other to c.
func (c *Counters) Add(other Counters) {
	c.Adds += other.Adds
	c.Updates += other.Updates
	c.Deletes += other.Deletes
	c.Relists.Expired += other.Relists.Expired
	c.Relists.TooLarge += other.Relists.TooLarge
	c.Relists.Restored += other.Relists.Restored
	c.Relists.Requested += other.Relists.Requested
	c.Relists.Diverged += other.Relists.Diverged
	c.Relists.Failed += other.Relists.Failed
	c.Verifications.Equal += other.Verifications.Equal
	c.Verifications.Diverged += other.Verifications.Diverged
	c.Verifications.Failed += other.Verifications.Failed
	c.Requests = addCounts(c.Requests, other.Requests)
	c.Failures = addCounts(c.Failures, other.Failures)
	c.Lists += other.Lists
	c.ListTime += other.ListTime
	c.Hits += other.Hits
	c.Misses += other.Misses
	c.Saves += other.Saves
	c.SaveFailures += other.SaveFailures
}

// addCounts adds numbers to the map to, or returns a copy of numbers if to is nil.
func addCounts[K comparable](to, numbers map[K]int64) map[K]int64 {
	if to == nil {
		return maps.Clone(numbers)
	}
	for k, n := range numbers {
		to[k] += n
	}
	return to
}

// RequestFailure is a failed list or watch.
type RequestFailure struct {
	// GVR is the type, and Options describes the informer's options.
	GVR     schema.GroupVersionResource
	Options string
	// Verb is "list", "watch", or "watch-list" for a watch that begins with a list.
	Verb string
	// Reason classifies Err.
	Reason Reason
	// Err is the error of the request, or the error that ended the watch.
	Err error
	// Time is the time of the failure.
	Time time.Time
}

// RequestFailureKind is the key under which failures are counted.
type RequestFailureKind struct {
	// Verb is as in RequestFailure.
	Verb   string
	Reason Reason
}

// Stats describe the memory of an informer's cache and count its events. Sizes are bytes of heap, as
// allocated, and of files. They are exact for packed objects. Those of the table, the indexes and decoded
// objects are extrapolated from samples.
type Stats struct {
	// GVR is the type, and Options describes the informer's options, as Status.Options.
	GVR     schema.GroupVersionResource
	Options string
	// Storage is the storage mode, as the text of dynamicinformer.StorageMode: "packed", for example.
	Storage string
	// Objects is the number of objects, Compressed the number of compressed ones.
	Objects, Compressed int
	// ObjectBytes is the size of the objects. It does not include the copies that were decoded for
	// readers, because the garbage collector can free them at any time.
	ObjectBytes int64
	// CompressedBytes is the part of ObjectBytes in compressed objects.
	CompressedBytes int64
	// TableBytes is the size of the table that maps keys to objects.
	TableBytes int64
	// Indexes are in the order in which they were added.
	Indexes []IndexStats
	// Hits is the number of reads that found a decoded copy of a packed object; Misses decoded it.
	Hits, Misses int64
	// ShardDropped is the number of received objects that were outside the shard (see
	// ResourceOptions.Shard): the useless work of a server that does not filter. It is zero without a shard.
	ShardDropped int64
	// Events counts the events since the informer was created.
	Events EventStats
	// ListDuration is as in Status.
	ListDuration time.Duration
}

// Bytes returns the sum of all parts.
func (s Stats) Bytes() int64 {
	total := s.ObjectBytes + s.TableBytes
	for _, x := range s.Indexes {
		total += x.Bytes
	}
	return total
}

// EventStats count the events of a cache since its informer was created.
type EventStats struct {
	// Adds is the number of added objects, including the initial list; Updates the number of changed
	// objects; Deletes the number of deleted objects. Events that change nothing, such as most events
	// of resyncs and relists, are not counted.
	Adds, Updates, Deletes int64
	// Relists is the number of lists after the first, for example because a watch could not continue. If each
	// namespace has its own watch, each of their lists counts. The first of an incarnation does not.
	Relists int64
	// LeftShard is the number of objects that left the shard (see ResourceOptions.Shard), without Deletes.
	LeftShard int64
}

// IndexStats describe the size of an index.
type IndexStats struct {
	Name string
	// Values is the number of different values. Entries is the sum of the numbers of objects under each
	// value: an object with two values counts twice.
	Values, Entries int
	Bytes           int64
}

// MemoryStats describe the memory of a factory's caches and Options.MemoryBudget. Sizes are in bytes.
type MemoryStats struct {
	// Budget is Options.MemoryBudget; zero without a budget.
	Budget int64
	// Used is the size of all caches with their tables and indexes.
	Used int64
	// Compressed is the size of the compressed objects, in any storage mode.
	Compressed int64
	// Compressible is the size of the objects that StorageAdaptive has not compressed. Compression does not
	// make all of them smaller.
	Compressible int64
	// OverBudget is the amount by which Used exceeds Budget; zero without a budget. It may be positive for a
	// moment while objects arrive. If it remains positive, compression cannot reach the budget.
	OverBudget int64
}
