package bind

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// ForInformer returns a source over an informer. Its snapshots are immutable and take constant time.
func ForInformer(informer *dynamicinformer.Informer) query.Source { return informerSource{informer} }

type informerSource struct{ informer *dynamicinformer.Informer }

func (s informerSource) Snapshot() query.Snapshot { return s.snapshot() }

func (s informerSource) snapshot() informerSnapshot {
	current := s.informer.Status() // read first, so that the content is not older than its Freshness
	content := s.informer.Snapshot()
	isRunning := current.State == status.Synced || current.State == status.Degraded // not between two runs
	return informerSnapshot{content, s.informer, query.Freshness{
		ResourceVersion: content.ResourceVersion(),
		LastContact:     current.LastContact,
		Synced: s.informer.HasSynced() && (isRunning || current.State == status.Stopped) &&
			(current.Shard == nil || slices.Equal(current.Shard.Desired, current.Shard.Listed)),
		Stale: current.Stale || current.State == status.Stopped,
		Shard: describeShard(current.Shard),
	}}
}

// maxShownRanges is the maximum number of ranges in a shard's description.
const maxShownRanges = 4

// describeShard returns the key and the listed ranges of a shard; empty without one.
func describeShard(shard *status.Shard) string {
	if shard == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "by %s, %d range%s", shard.Key, len(shard.Listed), map[bool]string{false: "s"}[len(shard.Listed) == 1])
	for i, r := range shard.Listed[:min(len(shard.Listed), maxShownRanges)] {
		b.WriteString([]string{": ", ", "}[min(i, 1)] + r.String())
	}
	if len(shard.Listed) > maxShownRanges {
		b.WriteString(", …")
	}
	return b.String()
}

// informerSnapshot returns objects as they are stored, so that a query decodes only objects that it reads.
type informerSnapshot struct {
	*dynamicinformer.Snapshot
	informer  *dynamicinformer.Informer
	freshness query.Freshness
}

func (s informerSnapshot) Drops(field string) bool { return s.informer.Drops(field) }

func (s informerSnapshot) Freshness() query.Freshness { return s.freshness }

func (s informerSnapshot) Get(key string) (any, bool) { return s.Stored(key) }

func (s informerSnapshot) All(yield func(key string, item any) bool) {
	yieldItems(s.AllStored(), yield)
}

// yieldItems calls yield for each object until it returns false.
func yieldItems(objects iter.Seq2[string, runtime.Object], yield func(key string, item any) bool) {
	objects(func(key string, object runtime.Object) bool { return yield(key, object) })
}

func (s informerSnapshot) Index(name string) (query.Index, bool) {
	index, ok := s.Snapshot.Index(name)
	return snapshotIndex{index}, ok
}

// snapshotIndex adapts an index of an informer's snapshot to query.Index.
type snapshotIndex struct{ dynamicinformer.SnapshotIndex }

func (i snapshotIndex) Objects(key string, yield func(object string, item any) bool) {
	yieldItems(i.SnapshotIndex.Objects(key), yield)
}

func (i snapshotIndex) Keys(from, to string, descending bool, yield func(key string, count int) bool) {
	i.Range(from, to, descending)(yield)
}

func (i snapshotIndex) Each(yield func(value string, count int) bool) { i.All()(yield) }

func (i snapshotIndex) CountKeys(from, to string) (count int, ok bool) { return i.CountRange(from, to) }

func (s informerSnapshot) Dropped(index string) uint64 { return s.functionsOf(index).Dropped(index) }

// Skipped returns the number of values that an index has left out because of their type or a limit.
func (s informerSnapshot) Skipped(index string) uint64 { return s.functionsOf(index).Skipped(index) }

// functionsOf returns the functions that count the values of an index. They are empty if nothing counts.
func (s informerSnapshot) functionsOf(index string) *indexers.Functions {
	if x, ok := s.Snapshot.Index(index); ok {
		if functions, ok := x.IndexSet().(*indexers.Functions); ok {
			return functions
		}
	}
	return &indexers.Functions{}
}
