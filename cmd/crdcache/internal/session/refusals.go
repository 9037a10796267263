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

// errRejected ends a wait for a request that will fail again.
var errRejected = errors.New("the server rejects the request")

// RejectedTypes ends the wait for a type when its requests fail with status 400. Informers retry these
// requests, but here the cause is the user's selector. The zero value is ready to use. Its methods are safe
// for concurrent use.
type RejectedTypes struct {
	mu       sync.Mutex
	contexts map[schema.GroupVersionResource]rejection
}

// rejection is a context that ends when a type is rejected.
type rejection struct {
	context.Context
	end context.CancelFunc
}

// Listener returns a listener that records rejected types and then calls next.
func (r *RejectedTypes) Listener(next status.Listener) status.Listener {
	notify := next.StateChanged
	next.StateChanged = func(before, after status.Status) {
		if apierrors.IsBadRequest(after.LastError) {
			r.of(after.GVR).end()
		}
		if notify != nil {
			notify(before, after)
		}
	}
	return next
}

func (r *RejectedTypes) of(gvr schema.GroupVersionResource) rejection {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.contexts == nil {
		r.contexts = map[schema.GroupVersionResource]rejection{}
	}
	if _, ok := r.contexts[gvr]; !ok {
		ctx, end := context.WithCancel(context.Background())
		r.contexts[gvr] = rejection{ctx, end}
	}
	return r.contexts[gvr]
}

// WaitForSync waits until each type is settled or rejected, or ctx ends. If types are not synced it returns
// one *dynamicinformer.NotSyncedError.
func (r *RejectedTypes) WaitForSync(ctx context.Context, types ...Cache) error {
	joined := &dynamicinformer.NotSyncedError{}
	for _, t := range types {
		syncCtx, end := context.WithCancelCause(ctx)
		stop := context.AfterFunc(r.of(t.Resource.GVR), func() { end(errRejected) })
		err := t.Factory.WaitForSync(syncCtx, t.Resource.GVR)
		stop()
		end(nil)
		var unsynced *dynamicinformer.NotSyncedError
		switch {
		case errors.As(err, &unsynced):
			joined.NotSynced = append(joined.NotSynced, unsynced.NotSynced...)
			// the status has the error of a rejected type
			if unsynced.Cause != nil && !errors.Is(unsynced.Cause, errRejected) {
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
