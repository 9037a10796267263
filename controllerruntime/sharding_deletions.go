package controllerruntime

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// deletionRetention limits how long a deletion is remembered that is not reconciled, for instance because
// predicates exclude it.
const deletionRetention = time.Hour

// recentDeletions are deleted objects that were not reconciled since. They distinguish deleted objects from
// objects that left the shard. A sharded cache contains neither kind.
type recentDeletions struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]deletion
	// lastSweep is the time of the last removal of expired deletions.
	lastSweep time.Time
}

type deletion struct {
	uid       types.UID
	deletedAt time.Time
}

func (d *recentDeletions) add(key types.NamespacedName, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.byKey == nil {
		d.byKey, d.lastSweep = map[types.NamespacedName]deletion{}, now
	}
	d.byKey[key] = deletion{uid, now}
	if now.Sub(d.lastSweep) < deletionRetention {
		return
	}
	d.lastSweep = now
	for key, old := range d.byKey {
		if now.Sub(old.deletedAt) > deletionRetention {
			delete(d.byKey, key)
		}
	}
}

func (d *recentDeletions) uid(key types.NamespacedName) (uid types.UID, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	recorded, ok := d.byKey[key]
	return recorded.uid, ok
}

// remove removes a deletion
func (d *recentDeletions) remove(key types.NamespacedName, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if recorded, ok := d.byKey[key]; ok && recorded.uid == uid {
		delete(d.byKey, key)
	}
}

// deletionRecorder records a delete before it calls the handler.
type deletionRecorder struct {
	toolscache.ResourceEventHandler
	record func(deleted any)
}

// OnDelete implements toolscache.ResourceEventHandler.
func (n deletionRecorder) OnDelete(object any) {
	n.record(object)
	n.ResourceEventHandler.OnDelete(object)
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

func (c *Cache) uidOf(ctx context.Context, key client.ObjectKey, object client.Object) (types.UID, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return "", err
	}
	r, _, err := c.resourceToRead(ctx, gvk, object)
	if err != nil {
		return "", err
	}
	var v *scopedInformer
	err = r.read(func(s *informerSet) error {
		if v = s.forNamespace(key.Namespace); v == nil {
			return errUnknownNamespace("get", key)
		}
		return r.awaitInformers(ctx, object, v)
	})
	if err != nil {
		return "", err
	}
	stored, err := r.stored(v, key)
	if err != nil {
		return "", err
	}
	return stored.(metav1.Object).GetUID(), nil
}
