package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// ForInformer makes a source of an informer of this library. Its snapshots are taken at once, whatever their
// size, and never change.
func ForInformer(informer *dynamicinformer.Informer) Source { return informerSource{informer} }

type informerSource struct{ informer *dynamicinformer.Informer }

func (s informerSource) Snapshot() Snapshot {
	current := s.informer.Status() // first, or the content could be older than the stamp says
	content := s.informer.Snapshot()
	return informerSnapshot{content, Stamp{
		ResourceVersion: content.ResourceVersion(),
		Contact:         current.LastContact,
		Synced:          s.informer.HasSynced() && complete(current.State) && holds(current.Shard),
		Stale:           current.Stale || current.State == status.Stopped,
		Shard:           part(current.Shard),
	}}
}

// complete reports whether the content of an informer that has synced is complete in a state: it is not
// between two generations.
func complete(state status.State) bool {
	return state == status.Synced || state == status.Degraded || state == status.Stopped
}

// holds reports whether all that is wanted of a shard is there; nil: everything is followed. Ranges that are
// added to one are listed while the informer stays synced.
func holds(shard *status.Shard) bool {
	return shard == nil || slices.Equal(shard.Wanted, shard.Listed)
}

// maxNamed is how many ranges of a shard are named.
const maxNamed = 4

// part names a shard by what is there of it; empty: everything is followed.
func part(shard *status.Shard) string {
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

// informerSnapshot gives objects as they are kept, so that only those that a query has to look into are
// decoded.
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
