package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// ForInformer makes a source of an informer of this library. Its snapshots are taken at once, whatever their
// size, and never change.
func ForInformer(informer *dynamicinformer.Informer) Source { return informerSource{informer} }

type informerSource struct{ informer *dynamicinformer.Informer }

func (s informerSource) Snapshot() Snapshot {
	status := s.informer.Status() // first, or the content could be older than the stamp says
	content := s.informer.Snapshot()
	return informerSnapshot{content, Stamp{
		ResourceVersion: content.ResourceVersion(),
		Contact:         status.LastContact,
		Synced:          s.informer.HasSynced() && complete(status.State) && holds(status.Shard),
		Stale:           status.Stale || status.State == dynamicinformer.StateStopped,
		Shard:           part(status.Shard),
	}}
}

// complete reports whether the content of an informer that has synced is complete in a state: it is not between
// two generations.
func complete(state dynamicinformer.State) bool {
	return state == dynamicinformer.StateSynced || state == dynamicinformer.StateDegraded || state == dynamicinformer.StateStopped
}

// holds reports whether all that is wanted of a shard is there; nil: everything is followed. Ranges that are added to one
// are listed while the informer stays synced.
func holds(shard *dynamicinformer.ShardStatus) bool {
	return shard == nil || slices.Equal(shard.Wanted, shard.Listed)
}

// maxNamed is how many ranges of a shard are named.
const maxNamed = 4

// part names a shard by what is there of it; empty: everything is followed.
func part(shard *dynamicinformer.ShardStatus) string {
	if shard == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "by %s, %s", shard.Key, count(len(shard.Listed), "range"))
	for i, r := range shard.Listed[:min(len(shard.Listed), maxNamed)] {
		b.WriteString([]string{": ", ", "}[min(i, 1)] + r.String())
	}
	if len(shard.Listed) > maxNamed {
		b.WriteString(", …")
	}
	return b.String()
}

// informerSnapshot gives objects as they are kept, so that only those that a query has to look into are decoded.
type informerSnapshot struct {
	*dynamicinformer.Snapshot
	stamp Stamp
}

func (s informerSnapshot) Stamp() Stamp { return s.stamp }

func (s informerSnapshot) Get(key string) (any, bool) { return s.Stored(key) }

func (s informerSnapshot) All(yield func(key string, item any) bool) { s.AllStored(yield) }

func (s informerSnapshot) Index(name string) (Index, bool) {
	index, ok := s.Snapshot.Index(name)
	return index, ok
}

// Dropped implements dropper.
func (s informerSnapshot) Dropped(index string) uint64 {
	x, ok := s.Snapshot.Index(index)
	if !ok {
		return 0
	}
	if d, ok := x.IndexSet().(dropper); ok {
		return d.Dropped(index)
	}
	return 0
}
