package query

import (
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/store"
)

// ForInformer makes a source of an informer of this library. Its snapshots are taken at once, whatever their
// size, and never change.
func ForInformer(informer *dynamicinformer.Informer) Source { return informerSource{informer} }

type informerSource struct{ informer *dynamicinformer.Informer }

func (s informerSource) Snapshot() Snapshot {
	status := s.informer.Status() // first, or the content could be older than the stamp says
	content := (*store.Snapshot)(s.informer.Snapshot())
	return storeSnapshot{content, Stamp{
		ResourceVersion: content.ResourceVersion(),
		Contact:         status.LastContact,
		Synced:          s.informer.HasSynced() && complete(status.State),
		Stale:           status.Stale,
	}}
}

// complete reports whether the content of an informer that has synced is complete in a state: it is not between
// two generations.
func complete(state dynamicinformer.State) bool {
	return state == dynamicinformer.StateSynced || state == dynamicinformer.StateDegraded || state == dynamicinformer.StateStopped
}
