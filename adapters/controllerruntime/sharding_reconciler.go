package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/queue"
)

// minRetryDelay is the minimum delay before an object of a newly acquired shard is retried.
const minRetryDelay = 250 * time.Millisecond

// Reconciler wraps a reconciler of objects of a sharded type. It drops requests for objects of other
// replicas, which reconcile all of their objects when they acquire a shard. When the shard is lost or must be
// released, it cancels the context of running reconciles and drops their results. OwnershipFrom returns the
// shard.
//
// By UID, an object that is not in the cache is reconciled only if it was deleted while this replica owned
// it, until that has succeeded, for at most an hour. Otherwise it may have left the shard.
//
// Call it after the cache, or the manager, has been created.
func (s *Sharding) Reconciler(object client.Object, inner reconcile.Reconciler) reconcile.Reconciler {
	r := &shardedReconciler{sharding: s, object: object, inner: inner,
		deletions: &recentDeletions{uids: utilcache.NewExpiring()}}
	r.cache, r.err = s.register(object, r.deletions)
	return r
}

// register adds a recorder of deletions.
func (s *Sharding) register(object client.Object, deletions *recentDeletions) (*Cache, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.cache
	if c == nil {
		return nil, errors.New("Sharding.Reconciler was called before the Sharding was given to a cache")
	}
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return nil, err
	}
	if len(s.mu.kinds) > 0 && !slices.Contains(s.mu.kinds, gvk) {
		return nil, fmt.Errorf("objects of %s are not sharded: add the type to ShardingOptions.Objects", gvk)
	}
	s.mu.reconcilers[gvk] = append(s.mu.reconcilers[gvk], deletions)
	return c, nil
}

type shardedReconciler struct {
	sharding  *Sharding
	object    client.Object
	inner     reconcile.Reconciler
	deletions *recentDeletions
	// cache has the objects; nil if err is set.
	cache *Cache
	err   error
}

func (r *shardedReconciler) Reconcile(ctx context.Context,
	request reconcile.Request) (reconcile.Result, error) {
	k, uid, err := r.shardOf(ctx, request)
	if err != nil || k < 0 {
		return reconcile.Result{}, err
	}
	r.sharding.mu.Lock()
	held := r.sharding.mu.heldShards[k]
	r.sharding.mu.Unlock()
	if held == nil || !held.ownership.Valid() || !held.working.TryRLock() { // it is being released, or lost
		return reconcile.Result{}, nil
	}
	defer held.working.RUnlock()
	if !queue.IsClosed(held.ready) {
		return reconcile.Result{RequeueAfter: minRetryDelay + rand.N(minRetryDelay)}, nil
	}
	working, cancel := context.WithCancelCause(context.WithValue(ctx, ownershipKey{}, held.ownership))
	defer cancel(nil)
	defer context.AfterFunc(held.ctx, func() { cancel(context.Cause(held.ctx)) })()
	result, err := r.inner.Reconcile(working, request)
	if held.ctx.Err() != nil {
		return reconcile.Result{}, nil // another replica has it
	}
	if err == nil && result == (reconcile.Result{}) {
		r.deletions.remove(request.NamespacedName, uid)
	}
	return result, err
}

// checkScope returns an error for a cluster-scoped type that is not sharded. Each replica has all its
// objects and receives their events once. Events that arrive before the shards would be dropped.
func (r *shardedReconciler) checkScope(request reconcile.Request) error {
	if request.Namespace != "" || len(r.sharding.options.Objects) > 0 {
		return nil
	}
	namespaced, err := apiutil.IsObjectNamespaced(r.object, r.cache.scheme, r.cache.mapper)
	if err == nil && !namespaced {
		err = reconcile.TerminalError(fmt.Errorf("controllerruntime: objects of %T are cluster-scoped and not sharded: add the type to ShardingOptions.Objects", r.object))
	}
	return err
}

// shardOf returns the shard of an object, or -1 if there is nothing to do. deleted is its UID if it was
// deleted.
func (r *shardedReconciler) shardOf(ctx context.Context,
	request reconcile.Request) (k int, deleted types.UID, err error) {
	if r.err != nil {
		return -1, "", reconcile.TerminalError(fmt.Errorf("controllerruntime: %w", r.err))
	}
	s := r.sharding
	if s.options.Key == sharding.ByNamespace {
		return s.shardOf(request.Namespace), "", r.checkScope(request)
	}
	_, _, stored, err := r.cache.findStored(ctx, nil, request.NamespacedName, r.object)
	switch {
	case err == nil:
		return s.shardOf(string(stored.(metav1.Object).GetUID())), "", nil
	case !apierrors.IsNotFound(err):
		return -1, "", err
	}
	if uid, ok := r.deletions.uid(request.NamespacedName); ok {
		return s.shardOf(string(uid)), uid, nil
	}
	return -1, "", nil
}
