package controllerruntime

import (
	"sync"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// registration is a handler's registration with an Informer.
type registration struct {
	informer *Informer
	parts    []viewRegistration
}

// viewRegistration is a handler's registration with the informer of one view.
type viewRegistration struct {
	informer *dynamicinformer.Informer
	toolscache.ResourceEventHandlerRegistration
}

var _ toolscache.ResourceEventHandlerRegistration = (*registration)(nil)

// remove removes the handler from all views. It is idempotent.
func (r *registration) remove() {
	for _, p := range r.parts {
		// it fails only for a registration of another type.
		_ = p.informer.RemoveEventHandler(p.ResourceEventHandlerRegistration)
	}
}

// HasSynced reports whether the handler has processed the initial list of every namespace.
func (r *registration) HasSynced() bool {
	for _, p := range r.parts {
		if !p.HasSynced() {
			return false
		}
	}
	return true
}

// HasSyncedChecker returns HasSynced as a channel. It stays open if the handler is removed first.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker {
	all := &doneCheckers{name: "event handler of " + r.informer.resource.key.gvk.String()}
	for _, p := range r.parts {
		all.parts = append(all.parts, condition{p.HasSyncedChecker().Done(), p.ended()})
	}
	return all
}

// ended returns a channel that is closed when the handler is no longer called.
func (p viewRegistration) ended() <-chan struct{} {
	if r, ok := p.ResourceEventHandlerRegistration.(interface{ ShutdownChan() <-chan struct{} }); ok {
		return r.ShutdownChan()
	}
	return p.informer.Stopped()
}

// doneCheckers combines several checkers into one toolscache.DoneChecker.
type doneCheckers struct {
	name  string
	parts []condition
	once  sync.Once
	done  chan struct{}
}

// condition is a condition to wait for; ended aborts the wait.
type condition struct{ done, ended <-chan struct{} }

func (c *doneCheckers) Name() string { return c.name }

func (c *doneCheckers) Done() <-chan struct{} {
	if len(c.parts) == 1 {
		return c.parts[0].done
	}
	c.once.Do(func() {
		c.done = make(chan struct{})
		if c.allDone() { // the channel of a single part is closed already, too
			close(c.done)
			return
		}
		go c.await() // returns when all parts are done, or one has ended
	})
	return c.done
}

func (c *doneCheckers) allDone() bool {
	for _, p := range c.parts {
		select {
		case <-p.done:
		default:
			return false
		}
	}
	return true
}

func (c *doneCheckers) await() {
	for _, p := range c.parts {
		select {
		case <-p.done:
		case <-p.ended:
			return
		}
	}
	close(c.done)
}
