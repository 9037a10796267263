package controllerruntime

import (
	"slices"
	"sync"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/queue"
)

// registration is a handler's registration with an Informer.
type registration struct {
	foreignRegistration //lint:ignore U1000 nil; it has the methods that newer releases add
	syncedChecker       *syncCheckers
	informer            *Informer
	// scoped is changed with resource.changeMu held.
	scoped atomic.Pointer[[]scopedRegistration]
	// removed is called when the handler is removed; nil if not needed.
	removed func() bool
}

// scopedRegistration is a handler's registration with one of the informers of a set.
type scopedRegistration struct {
	informerSet *informerSet
	informer    *dynamicinformer.Informer
	toolscache.ResourceEventHandlerRegistration
}

// registrations returns the registrations with all informers, in the order of the informerSet.
func (r *registration) registrations() []toolscache.ResourceEventHandlerRegistration {
	return naming.Map(r.parts(), func(p scopedRegistration) toolscache.ResourceEventHandlerRegistration {
		return p.ResourceEventHandlerRegistration
	})
}

func (r *registration) setRegistrations(set *informerSet,
	parts []toolscache.ResourceEventHandlerRegistration) {
	all := make([]scopedRegistration, len(parts))
	for k, part := range parts {
		all[k] = scopedRegistration{set, set.informersByNamespace[k].informer(), part}
	}
	r.scoped.Store(&all)
}

func (r *registration) parts() []scopedRegistration { return ptr.Deref(r.scoped.Load(), nil) }

// remove removes the handler from all informers. It is idempotent.
func (r *registration) remove() {
	if r.removed != nil {
		r.removed()
	}
	for _, p := range r.parts() {
		// it fails only for a registration of another type.
		_ = p.informer.RemoveEventHandler(p.ResourceEventHandlerRegistration)
	}
}

// HasSynced reports whether the handler has processed the initial list of every namespace.
func (r *registration) HasSynced() bool {
	return !slices.ContainsFunc(r.parts(), func(p scopedRegistration) bool { return !p.HasSynced() })
}

// conditions returns HasSynced of each part. They are never met if the handler is removed first.
func (r *registration) conditions() []waitCondition {
	return naming.Map(r.parts(), func(p scopedRegistration) waitCondition {
		return waitCondition{p.HasSyncedChecker().Done(), p.ended(), p.informerSet.replaced}
	})
}

// ended returns a channel that is closed when the handler is no longer called.
func (s scopedRegistration) ended() <-chan struct{} {
	if r, ok := s.ResourceEventHandlerRegistration.(interface{ ShutdownChan() <-chan struct{} }); ok {
		return r.ShutdownChan()
	}
	return s.informer.Stopped()
}

// HasSyncedChecker returns HasSynced as a channel.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker { return r.syncedChecker }

// syncCheckers combines several conditions into one cache.DoneChecker.
type syncCheckers struct {
	name       string
	conditions func() []waitCondition
	resource   *resource

	once sync.Once
	done chan struct{}
}

// waitCondition is a condition to wait for. ended aborts the wait; replaced is closed when there is another
// condition.
type waitCondition struct{ done, ended, replaced <-chan struct{} }

func (c *syncCheckers) Name() string { return c.name }

func (c *syncCheckers) Done() <-chan struct{} {
	c.once.Do(func() {
		c.done = make(chan struct{})
		conditions := c.conditions()
		if slices.ContainsFunc(conditions, func(p waitCondition) bool { return !queue.IsClosed(p.done) }) {
			go c.await(conditions) // returns when all parts are done, or one has ended
		} else {
			close(c.done) // already now
		}
	})
	return c.done
}

func (c *syncCheckers) await(conditions []waitCondition) {
	for k := 0; k < len(conditions); k++ {
		select {
		case <-conditions[k].done:
			continue
		case <-conditions[k].replaced:
		case <-conditions[k].ended:
		}
		c.resource.changeMu.Lock() // after a running change of handlers, indexes or informers
		next := c.conditions()
		c.resource.changeMu.Unlock()
		if !slices.Equal(next, conditions) {
			conditions, k = next, -1
			continue
		}
		if !queue.IsClosed(conditions[k].done) {
			return
		}
	}
	close(c.done)
}
