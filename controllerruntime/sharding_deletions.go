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

// deletionMemory is how long a deletion that nobody reconciles is remembered: it may be that predicates leave
// it out.
const deletionMemory = time.Hour

// deletions are the objects that were deleted, and not reconciled since: what is not in a sharded cache may
// as well have left.
type deletions struct {
	mu    sync.Mutex
	known map[types.NamespacedName]deletion
	// swept is when what is too old was last removed.
	swept time.Time
}

type deletion struct {
	uid types.UID
	at  time.Time
}

// note remembers a deletion.
func (d *deletions) note(key types.NamespacedName, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.known == nil {
		d.known, d.swept = map[types.NamespacedName]deletion{}, now
	}
	d.known[key] = deletion{uid, now}
	if now.Sub(d.swept) < deletionMemory {
		return
	}
	d.swept = now
	for key, old := range d.known {
		if now.Sub(old.at) > deletionMemory {
			delete(d.known, key)
		}
	}
}

// of returns the UID that an object had.
func (d *deletions) of(key types.NamespacedName) (uid types.UID, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.known[key]
	return known.uid, ok
}

// reconciled forgets a deletion.
func (d *deletions) reconciled(key types.NamespacedName, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.known[key]; ok && known.uid == uid {
		delete(d.known, key)
	}
}

// noting calls a handler, and has a deletion noted before.
type noting struct {
	toolscache.ResourceEventHandler
	note func(deleted any)
}

// OnDelete implements toolscache.ResourceEventHandler.
func (n noting) OnDelete(object any) {
	n.note(object)
	n.ResourceEventHandler.OnDelete(object)
}

// noteOf returns what has to know of deletions of a resource before its handlers do; nil: nobody.
func (s *Sharding) noteOf(r *resource) func(deleted any) {
	if s == nil || s.options.Key != sharding.ByUID || s.of(r) == nil {
		return nil
	}
	return func(deleted any) { s.noteDeletion(r.key.gvk, deleted) }
}

func (s *Sharding) noteDeletion(gvk schema.GroupVersionKind, deleted any) {
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
		d.note(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
			object.GetUID())
	}
}

// uidOf returns the UID of an object in the cache.
func (c *Cache) uidOf(ctx context.Context, key client.ObjectKey, object client.Object) (types.UID, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return "", err
	}
	r, _, err := c.reading(ctx, gvk, object)
	if err != nil {
		return "", err
	}
	v := r.in(key.Namespace)
	if v == nil {
		return "", errUnknownNamespace("get", key)
	}
	if err := r.awaitViews(ctx, object, v); err != nil {
		return "", err
	}
	stored, err := r.stored(v, key)
	if err != nil {
		return "", err
	}
	return stored.(metav1.Object).GetUID(), nil
}
