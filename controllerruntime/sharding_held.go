package controllerruntime

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/shard"
)

// heldShard is an owned shard and the work that runs in it.
type heldShard struct {
	tenure *shard.Tenure
	// ctx is the context of the work. It is cancelled when the tenure ends, or when draining takes too
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

func newHeldShard(tenure *shard.Tenure) *heldShard {
	h := &heldShard{tenure: tenure, ready: make(chan struct{}), idle: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.WithValue(tenure.Context(), tenureKey{}, tenure))
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

// admission is the answer to a request to work in a shard.
type admission int

const (
	admitted admission = iota
	notReady           // the caches have not synced
	draining           // the shard is being released, or is lost
)

// enter asks for permission to work. If admitted, the caller must call exit.
func (h *heldShard) enter() admission {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.mu.leaving || !h.tenure.Valid():
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

type tenureKey struct{}

// TenureFrom returns the tenure of the shard that a reconcile works in, or nil. ctx is the context of a
// reconciler that Sharding.Reconciler wraps. Use Tenure.Token to fence writes to systems other than the API
// server.
func TenureFrom(ctx context.Context) *shard.Tenure {
	tenure, _ := ctx.Value(tenureKey{}).(*shard.Tenure)
	return tenure
}
