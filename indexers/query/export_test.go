package query

import "github.com/crdcache/crdcache/internal/store"

// StoreSource makes a source of a store without an informer.
type StoreSource struct{ *store.Store }

// Snapshot implements Source.
func (s StoreSource) Snapshot() Snapshot {
	content := s.Store.Snapshot()
	return storeSnapshot{content, Stamp{ResourceVersion: content.ResourceVersion(), Synced: true}}
}
