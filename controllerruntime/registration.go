package controllerruntime

import (
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/newer"
)

// registration is a handler's registration with an Informer.
type registration struct {
	syncedChecker
	informer *Informer
	scoped   []scopedRegistration
}

// scopedRegistration is a handler's registration with the informer of one view.
type scopedRegistration struct {
	informer *dynamicinformer.Informer
	toolscache.ResourceEventHandlerRegistration
}

var _ toolscache.ResourceEventHandlerRegistration = (*registration)(nil)

// remove removes the handler from all views. It is idempotent.
func (r *registration) remove() {
	for _, p := range r.scoped {
		// it fails only for a registration of another type.
		_ = p.informer.RemoveEventHandler(p.ResourceEventHandlerRegistration)
	}
}

// HasSynced reports whether the handler has processed the initial list of every namespace.
func (r *registration) HasSynced() bool {
	for _, p := range r.scoped {
		if !p.HasSynced() {
			return false
		}
	}
	return true
}

func (r *registration) name() string {
	return "event handler of " + r.informer.resource.key.gvk.String()
}

// conditions returns HasSynced of each part. They are never met if the handler is removed first.
func (r *registration) conditions() (all []waitCondition) {
	for _, p := range r.scoped {
		all = append(all, waitCondition{newer.Done(p.ResourceEventHandlerRegistration, p.ended()), p.ended()})
	}
	return all
}

// ended returns a channel that is closed when the handler is no longer called.
func (p scopedRegistration) ended() <-chan struct{} {
	if r, ok := p.ResourceEventHandlerRegistration.(interface{ ShutdownChan() <-chan struct{} }); ok {
		return r.ShutdownChan()
	}
	return p.informer.Stopped()
}

// syncedChecker gives a type the method HasSyncedChecker of cache.DoneChecker, which client-go has since
// 0.36.
type syncedChecker = newer.SyncedChecker

// syncCheckers combines several conditions into one cache.DoneChecker.
type syncCheckers struct {
	name       func() string
	conditions func() []waitCondition

	mu   sync.Mutex
	last []waitCondition
	done chan struct{} // of last
}

// waitCondition is a condition to wait for; ended aborts the wait.
type waitCondition struct{ done, ended <-chan struct{} }

func (c *syncCheckers) Name() string { return c.name() }

func (c *syncCheckers) Done() <-chan struct{} {
	all := c.conditions()
	if len(all) == 1 {
		return all[0].done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil && slices.Equal(all, c.last) {
		return c.done
	}
	c.last, c.done = all, make(chan struct{})
	if allDone(all) { // the channel of a single part is closed already, too
		close(c.done)
	} else {
		go await(all, c.done) // returns when all parts are done, or one has ended
	}
	return c.done
}

func allDone(all []waitCondition) bool {
	for _, p := range all {
		select {
		case <-p.done:
		default:
			return false
		}
	}
	return true
}

func await(all []waitCondition, done chan<- struct{}) {
	for _, p := range all {
		select {
		case <-p.done:
		case <-p.ended:
			return
		}
	}
	close(done)
}
