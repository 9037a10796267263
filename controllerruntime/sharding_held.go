package controllerruntime

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/shard"
)

// heldShard is a shard that the replica holds: who works in it, and whether anybody may.
type heldShard struct {
	tenure *shard.Tenure
	// ctx is that of the work: cancelled when the tenure ends, or draining has taken too long.
	ctx    context.Context
	cancel context.CancelFunc
	idle   chan struct{}

	mu struct {
		sync.Mutex
		isReady, leaving bool
		busy             int
	}
}

func newHeldShard(tenure *shard.Tenure) *heldShard {
	h := &heldShard{tenure: tenure, idle: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.WithValue(tenure.Context(), tenureKey{}, tenure))
	return h
}

// ready lets work begin.
func (h *heldShard) ready() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.isReady = true
}

// admission is what becomes of somebody who wants to work in a shard.
type admission int

const (
	admitted admission = iota
	tooEarly           // the caches are not filled
	tooLate            // the shard is being given up, or lost
)

// enter admits somebody to work, who calls exit at the end.
func (h *heldShard) enter() admission {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.mu.leaving || !h.tenure.Valid():
		return tooLate
	case !h.mu.isReady:
		return tooEarly
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

// leave admits nobody any more, and returns what is closed when all have left. It is called once.
func (h *heldShard) leave() (idle <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.leaving = true; h.mu.busy == 0 {
		close(h.idle)
	}
	return h.idle
}

// tenureKey is that of a Tenure in a context.
type tenureKey struct{}

// TenureFrom returns the shard that a reconcile works in, from the context of a reconciler that
// Sharding.Reconciler wraps: for its Token, which fences writes to what is not the API server. It returns nil
// elsewhere.
func TenureFrom(ctx context.Context) *shard.Tenure {
	tenure, _ := ctx.Value(tenureKey{}).(*shard.Tenure)
	return tenure
}
