package query

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"k8s.io/apimachinery/pkg/runtime"
)

// ForInformer returns a source over an informer. Its snapshots are immutable and take constant time.
func ForInformer(informer *dynamicinformer.Informer) Source { return informerSource{informer} }

type informerSource struct{ informer *dynamicinformer.Informer }

func (s informerSource) Snapshot() Snapshot {
	current := s.informer.Status() // read first, so that the content is not older than its Freshness
	content := s.informer.Snapshot()
	return informerSnapshot{content, s.informer, Freshness{
		ResourceVersion: content.ResourceVersion(),
		LastContact:     current.LastContact,
		Synced:          s.informer.HasSynced() && isComplete(current.State) && shardComplete(current.Shard),
		Stale:           current.Stale || current.State == status.Stopped,
		Shard:           describeShard(current.Shard),
	}}
}

// isComplete reports whether an informer that has synced has complete content in a state. It is incomplete
// between two runs of the informer.
func isComplete(state status.State) bool {
	return state == status.Synced || state == status.Degraded || state == status.Stopped
}

// shardComplete reports whether all ranges of a shard have been listed. Added ranges are listed while the
// informer stays synced.
func shardComplete(shard *status.Shard) bool {
	return shard == nil || slices.Equal(shard.Desired, shard.Listed)
}

// maxNamed is the maximum number of ranges in a shard's description.
const maxNamed = 4

// describeShard returns the key and the listed ranges of a shard; empty without one.
func describeShard(shard *status.Shard) string {
	if shard == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "by %s, %s", shard.Key, countOf(len(shard.Listed), "range"))
	for i, r := range shard.Listed[:min(len(shard.Listed), maxNamed)] {
		b.WriteString([]string{": ", ", "}[min(i, 1)] + r.String())
	}
	if len(shard.Listed) > maxNamed {
		b.WriteString(", …")
	}
	return b.String()
}

// informerSnapshot returns objects as they are stored, so that a query decodes only those that it reads.
type informerSnapshot struct {
	*dynamicinformer.Snapshot
	informer  *dynamicinformer.Informer
	freshness Freshness
}

func (s informerSnapshot) Drops(field string) bool { return s.informer.Drops(field) }

func (s informerSnapshot) Freshness() Freshness { return s.freshness }

func (s informerSnapshot) Get(key string) (any, bool) { return s.Stored(key) }

func (s informerSnapshot) All(yield func(key string, item any) bool) {
	yieldItems(s.AllStored(), yield)
}

// yieldItems calls yield for each object until it returns false.
func yieldItems(objects iter.Seq2[string, runtime.Object], yield func(key string, item any) bool) {
	objects(func(key string, object runtime.Object) bool { return yield(key, object) })
}

func (s informerSnapshot) Index(name string) (Index, bool) {
	index, ok := s.Snapshot.Index(name)
	return informerIndex{index}, ok
}

// informerIndex adapts an index of an informer's snapshot to Index.
type informerIndex struct{ dynamicinformer.SnapshotIndex }

func (x informerIndex) Objects(key string, yield func(object string, item any) bool) {
	yieldItems(x.SnapshotIndex.Objects(key), yield)
}

func (x informerIndex) Keys(from, to string, descending bool, yield func(key string, count int) bool) {
	x.Range(from, to, descending)(yield)
}

func (x informerIndex) Each(yield func(value string, count int) bool) { x.All()(yield) }

func (x informerIndex) CountKeys(from, to string) (count int, ok bool) { return x.CountRange(from, to) }

func (s informerSnapshot) Dropped(index string) uint64 {
	x, ok := s.Snapshot.Index(index)
	if !ok {
		return 0
	}
	if d, ok := x.IndexSet().(limitReporter); ok {
		return d.Dropped(index)
	}
	return 0
}
