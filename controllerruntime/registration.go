package controllerruntime

import (
	"sync"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// registration is the place of a handler in an Informer.
type registration struct {
	informer *Informer
	parts    []registered
}

// registered is the place of a handler in the informer of one view.
type registered struct {
	informer *dynamicinformer.Informer
	toolscache.ResourceEventHandlerRegistration
}

var _ toolscache.ResourceEventHandlerRegistration = (*registration)(nil)

// remove takes the handler out of all views. Doing so again is fine.
func (r *registration) remove() {
	for _, p := range r.parts {
		// it fails only for a registration of another kind
		_ = p.informer.RemoveEventHandler(p.ResourceEventHandlerRegistration)
	}
}

// HasSynced reports whether the handler has returned from the initial list of every namespace.
func (r *registration) HasSynced() bool {
	for _, p := range r.parts {
		if !p.HasSynced() {
			return false
		}
	}
	return true
}

// HasSyncedChecker is HasSynced as a channel, which stays open when the handler is removed before.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker {
	all := &checkers{name: "event handler of " + r.informer.resource.key.gvk.String()}
	for _, p := range r.parts {
		all.parts = append(all.parts, part{p.HasSyncedChecker().Done(), p.ended()})
	}
	return all
}

// ended is closed when the handler is not called any more.
func (p registered) ended() <-chan struct{} {
	if r, ok := p.ResourceEventHandlerRegistration.(interface{ ShutdownChan() <-chan struct{} }); ok {
		return r.ShutdownChan()
	}
	return p.informer.Stopped()
}

// checkers is a toolscache.DoneChecker over several.
type checkers struct {
	name  string
	parts []part
	once  sync.Once
	done  chan struct{}
}

// part is one of several things to wait for, and what ends the wait for it.
type part struct{ done, ended <-chan struct{} }

// Name implements toolscache.DoneChecker.
func (c *checkers) Name() string { return c.name }

// Done implements toolscache.DoneChecker.
func (c *checkers) Done() <-chan struct{} {
	if len(c.parts) == 1 {
		return c.parts[0].done
	}
	c.once.Do(func() {
		c.done = make(chan struct{})
		if c.allDone() { // the channel is closed at once, as that of one part is
			close(c.done)
			return
		}
		go c.await() // ended by the sync or the end of what is waited for
	})
	return c.done
}

func (c *checkers) allDone() bool {
	for _, p := range c.parts {
		select {
		case <-p.done:
		default:
			return false
		}
	}
	return true
}

func (c *checkers) await() {
	for _, p := range c.parts {
		select {
		case <-p.done:
		case <-p.ended:
			return
		}
	}
	close(c.done)
}
