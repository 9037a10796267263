package controllerruntime

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// deletionRetention limits how long a deletion is remembered that is not reconciled, for instance because
// predicates exclude it.
const deletionRetention = time.Hour

// recentDeletions are the UIDs of deleted objects that were not reconciled since, by their keys. They
// distinguish deleted objects from objects that left the shard. A sharded cache contains neither kind.
type recentDeletions struct {
	mu   sync.Mutex // makes remove atomic
	uids *utilcache.Expiring
}

func newRecentDeletions() *recentDeletions { return &recentDeletions{uids: utilcache.NewExpiring()} }

func (d *recentDeletions) add(key types.NamespacedName, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uids.Set(key, uid, deletionRetention)
}

func (d *recentDeletions) uid(key types.NamespacedName) (uid types.UID, ok bool) {
	found, ok := d.uids.Get(key)
	if ok {
		uid = found.(types.UID)
	}
	return uid, ok
}

// remove removes the entry of a key, unless another UID has been recorded for it since.
func (d *recentDeletions) remove(key types.NamespacedName, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found, ok := d.uid(key); ok && found == uid {
		d.uids.Delete(key)
	}
}

// deletionHandler returns the function that records deletes of a resource, or nil if they need not be
// recorded.
func (s *Sharding) deletionHandler(r *resource) func(deleted any) {
	if s == nil || s.options.Key != sharding.ByUID || s.shardFor(r) == nil {
		return nil
	}
	return func(deleted any) { s.recordDeletion(r.key.gvk, deleted) }
}

func (s *Sharding) recordDeletion(gvk schema.GroupVersionKind, deleted any) {
	if tombstone, ok := deleted.(toolscache.DeletedFinalStateUnknown); ok {
		deleted = tombstone.Obj
	}
	object, ok := deleted.(metav1.Object)
	if !ok {
		return
	}
	s.mu.Lock()
	interested := s.mu.reconcilers[gvk]
	s.mu.Unlock()
	for _, d := range interested {
		d.add(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
			object.GetUID())
	}
}
