package controllerruntime

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/adapters/shard"
)

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

func newHeldShard(ownership *shard.Ownership) *heldShard {
	h := &heldShard{ownership: ownership, ready: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.WithValue(ownership.Context(), ownershipKey{}, ownership))
	return h
}

// shardAdmission is the answer to a request to work in a shard.
type shardAdmission int

const (
	admitted shardAdmission = iota
	notReady                // the caches have not synced
	draining                // the shard is being released, or is lost
)

// enter reports whether the shard admits work. If it returns admitted, the caller must call exit.
func (h *heldShard) enter() shardAdmission {
	if !h.ownership.Valid() || !h.working.TryRLock() {
		return draining
	}
	select {
	case <-h.ready:
		return admitted
	default:
		h.working.RUnlock()
		return notReady
	}
}

func (h *heldShard) exit() { h.working.RUnlock() }

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
