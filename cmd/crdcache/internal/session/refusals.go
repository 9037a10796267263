package session

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// errRefused ends a wait for a request that will fail again.
var errRefused = errors.New("the server rejects the request")

// RejectedTypes ends the wait for a type when its requests fail with status 400. Informers retry these
// requests, but here the cause is the user's selector. The zero value is ready to use. Its methods are safe
// for concurrent use.
type RejectedTypes struct {
	mu    sync.Mutex
	types map[schema.GroupVersionResource]chan struct{} // closed when the type is refused
}

// Listener returns a listener that records refusals and then calls next.
func (r *RejectedTypes) Listener(next status.Listener) status.Listener {
	notify := next.StateChanged
	next.StateChanged = func(before, after status.Status) {
		if apierrors.IsBadRequest(after.LastError) && !apierrors.IsBadRequest(before.LastError) {
			r.reject(after.GVR)
		}
		if notify != nil {
			notify(before, after)
		}
	}
	return next
}

func (r *RejectedTypes) reject(gvr schema.GroupVersionResource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused := r.channel(gvr)
	select {
	case <-refused:
	default:
		close(refused)
	}
}

// channel returns the channel of a type. The caller must hold mu.
func (r *RejectedTypes) channel(gvr schema.GroupVersionResource) chan struct{} {
	if r.types == nil {
		r.types = map[schema.GroupVersionResource]chan struct{}{}
	}
	if r.types[gvr] == nil {
		r.types[gvr] = make(chan struct{})
	}
	return r.types[gvr]
}

// WaitForSync waits until each type is settled or refused, or ctx ends. If types are not synced it returns
// one *dynamicinformer.NotSyncedError.
func (r *RejectedTypes) WaitForSync(ctx context.Context, factory *dynamicinformer.Factory,
	gvrs ...schema.GroupVersionResource) error {
	joined := &dynamicinformer.NotSyncedError{}
	for _, gvr := range gvrs {
		err := r.waitForOne(ctx, factory, gvr)
		var unsynced *dynamicinformer.NotSyncedError
		switch {
		case errors.As(err, &unsynced):
			joined.NotSynced = append(joined.NotSynced, unsynced.NotSynced...)
			// the status has the refusal
			if unsynced.Cause != nil && !errors.Is(unsynced.Cause, errRefused) {
				joined.Cause = unsynced.Cause
			}
		case err != nil:
			return err
		}
	}
	if len(joined.NotSynced) == 0 {
		return nil
	}
	return joined
}

func (r *RejectedTypes) waitForOne(ctx context.Context, factory *dynamicinformer.Factory,
	gvr schema.GroupVersionResource) error {
	r.mu.Lock()
	refused := r.channel(gvr)
	r.mu.Unlock()
	syncCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { // ended by end
		select {
		case <-refused:
			end(errRefused)
		case <-syncCtx.Done():
		}
	}()
	return factory.WaitForSync(syncCtx, gvr)
}
