package controllerruntime

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/shard"
)

// heldShard is an owned shard and the work that runs in it.
type heldShard struct {
	ownership *shard.Ownership
	// ctx is the context of the work. It is cancelled when the ownership ends, or when draining takes too
	// long.
	ctx    context.Context
	cancel context.CancelFunc
	// ready is closed when the caches have synced and work may begin.
	ready, idle chan struct{}

	mu struct {
		sync.Mutex
		leaving bool
		busy    int
	}
}

func newHeldShard(ownership *shard.Ownership) *heldShard {
	h := &heldShard{ownership: ownership, ready: make(chan struct{}), idle: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.WithValue(ownership.Context(), ownershipKey{}, ownership))
	return h
}

func (h *heldShard) isReady() bool {
	select {
	case <-h.ready:
		return true
	default:
		return false
	}
}

// shardAdmission is the answer to a request to work in a shard.
type shardAdmission int

const (
	admitted shardAdmission = iota
	notReady                // the caches have not synced
	draining                // the shard is being released, or is lost
)

// enter asks for permission to work. If admitted, the caller must call exit.
func (h *heldShard) enter() shardAdmission {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.mu.leaving || !h.ownership.Valid():
		return draining
	case !h.isReady():
		return notReady
	}
	h.mu.busy++
	return admitted
}

func (h *heldShard) exit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.busy--; h.mu.busy == 0 && h.mu.leaving {
		close(h.idle)
	}
}

// startDraining rejects further work, and returns a channel that is closed when no work is running. It is
// called once.
func (h *heldShard) startDraining() (idle <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.leaving = true; h.mu.busy == 0 {
		close(h.idle)
	}
	return h.idle
}

type ownershipKey struct{}

// OwnershipFrom returns the ownership of the shard that a reconcile works in, or nil. ctx is the context of a
// reconciler that Sharding.Reconciler wraps. Use Ownership.Token to fence writes to systems other than the
// API server.
func OwnershipFrom(ctx context.Context) *shard.Ownership {
	ownership, _ := ctx.Value(ownershipKey{}).(*shard.Ownership)
	return ownership
}
