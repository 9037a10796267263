package controllerruntime

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/shard"
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

func (d *recentDeletions) add(key types.NamespacedName, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uids.Set(key, uid, deletionRetention)
}

func (d *recentDeletions) uid(key types.NamespacedName) (uid types.UID, ok bool) {
	found, ok := d.uids.Get(key)
	uid, _ = found.(types.UID)
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
	return func(deleted any) {
		if tombstone, ok := deleted.(toolscache.DeletedFinalStateUnknown); ok {
			deleted = tombstone.Obj
		}
		object, ok := deleted.(metav1.Object)
		if !ok {
			return
		}
		s.mu.Lock()
		interested := s.mu.reconcilers[r.key.gvk]
		s.mu.Unlock()
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		for _, d := range interested {
			d.add(key, object.GetUID())
		}
	}
}

// heldShard is an owned shard and the work that runs in it.
type heldShard struct {
	ownership *shard.Ownership
	// ctx is the context of the work. It is cancelled when the ownership ends, or when draining takes too
	// long.
	ctx    context.Context
	cancel context.CancelFunc
	// ready is closed when the caches have synced and work may begin.
	ready chan struct{}
	// working is locked for reading by running work, and for writing from the beginning of the drain on.
	working sync.RWMutex
}

// drain rejects further work and waits until no work is running. It cancels running work when ctx ends.
func (h *heldShard) drain(ctx context.Context) {
	defer h.cancel()
	defer context.AfterFunc(ctx, h.cancel)()
	h.working.Lock() // for ever
}

type ownershipKey struct{}

// OwnershipFrom returns the ownership of the shard that a reconcile works in, or nil. ctx is the context of a
// reconciler that Sharding.Reconciler wraps. Use Ownership.Token to fence writes to systems other than the
// API server.
func OwnershipFrom(ctx context.Context) *shard.Ownership {
	ownership, _ := ctx.Value(ownershipKey{}).(*shard.Ownership)
	return ownership
}
