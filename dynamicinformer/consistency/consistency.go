package consistency

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/internal/naming"
)

// LastSyncRVGetter is the store of an informer: Informer.GetStore of package dynamicinformer returns one, and
// client-go's since 0.36.
type LastSyncRVGetter interface {
	LastStoreSyncResourceVersion() string
}

// ConsistencyError is returned by EnsureReady if a store lacks a write.
type ConsistencyError struct {
	// ReadRV is the resource version of the store, WroteRV that of the write.
	ReadRV, WroteRV string
	GroupResource   schema.GroupResource
}

// Error implements error.
func (e *ConsistencyError) Error() string {
	return fmt.Sprintf("the cache of %s is at resource version %s and lacks the write at %s", e.GroupResource,
		e.ReadRV, e.WroteRV)
}

// ConsistencyStore records the last writes for each owner: an object that a controller reconciles. It is safe
// for concurrent use.
type ConsistencyStore struct {
	stores map[schema.GroupResource]LastSyncRVGetter

	mu     sync.Mutex
	owners map[types.NamespacedName]ownerRecord
	skips  map[schema.GroupResource]int64
}

// ownerRecord holds the last written resource version of each type.
type ownerRecord struct {
	uid      types.UID
	versions map[schema.GroupResource]string
}

// NewConsistencyStore returns a store for writes to these types. Writes to other types are ignored.
func NewConsistencyStore(stores map[schema.GroupResource]LastSyncRVGetter) *ConsistencyStore {
	return &ConsistencyStore{
		stores: stores, owners: map[types.NamespacedName]ownerRecord{},
		skips: map[schema.GroupResource]int64{},
	}
}

// WroteAt records that a write for an owner, to the owner itself or to an object that it owns, has returned a
// resource version. An owner with another UID replaces the record.
func (s *ConsistencyStore) WroteAt(owner types.NamespacedName, ownerUID types.UID,
	resource schema.GroupResource, rv string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.owners[owner]
	if !ok || r.uid != ownerUID {
		r = ownerRecord{ownerUID, map[schema.GroupResource]string{}}
		s.owners[owner] = r
	}
	recorded := r.versions[resource]
	if !naming.IsVersion(recorded) || !naming.IsVersion(rv) || naming.IsOlder(recorded, rv) {
		r.versions[resource] = rv
	}
}

// EnsureReady returns nil, and removes the record of the owner, if the stores have its writes. Otherwise it
// returns a *ConsistencyError and counts a skip. As in Kubernetes, versions that cannot be compared do not
// block. A store without a version does not block either. Do not call it while a write for the owner is
// running.
func (s *ConsistencyStore) EnsureReady(owner types.NamespacedName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for resource, wroteRV := range s.owners[owner].versions {
		store := s.stores[resource]
		if store == nil {
			continue
		}
		if readRV := store.LastStoreSyncResourceVersion(); naming.IsOlder(readRV, wroteRV) {
			s.skips[resource]++
			return &ConsistencyError{ReadRV: readRV, WroteRV: wroteRV, GroupResource: resource}
		}
	}
	delete(s.owners, owner)
	return nil
}

// Clear removes the record of an owner with this UID; an empty UID matches any.
func (s *ConsistencyStore) Clear(owner types.NamespacedName, ownerUID types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ownerUID == "" || s.owners[owner].uid == ownerUID {
		delete(s.owners, owner)
	}
}

// ResourceStats are the figures of a type. Package metrics exports them as the two metrics of KEP-5647.
type ResourceStats struct {
	GroupResource schema.GroupResource
	// StaleSyncSkips is the number of errors of EnsureReady: stale_sync_skips_total.
	StaleSyncSkips int64
	// StoreVersion is the resource version of the store; empty if it has none:
	// informer_store_resource_version.
	StoreVersion string
}

// Stats returns the figures of each type, ordered by name.
func (s *ConsistencyStore) Stats() []ResourceStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := make([]ResourceStats, 0, len(s.stores))
	for _, resource := range slices.SortedFunc(maps.Keys(s.stores), func(a, b schema.GroupResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	}) {
		resourceStats := ResourceStats{GroupResource: resource, StaleSyncSkips: s.skips[resource]}
		if store := s.stores[resource]; store != nil {
			resourceStats.StoreVersion = store.LastStoreSyncResourceVersion()
		}
		stats = append(stats, resourceStats)
	}
	return stats
}
