package controllers

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// Type is a kind of objects, which need not be installed.
type Type struct {
	schema.GroupKind
	// Version is the version to watch. Default: the one that the server prefers. When the server no longer
	// serves it, another takes over.
	Version string
}

// feed calls a handler with the objects of a type, from the informer of one version at a time.
// Controllers.mu guards it.
type feed struct {
	controllers *Controllers
	of          Type
	options     dynamicinformer.ResourceOptions
	handler     toolscache.ResourceEventHandler
	onMove      func(*dynamicinformer.Informer) // is called when another version takes over
	gvr         schema.GroupVersionResource
	// handle and registration are nil until the type is known.
	handle       *dynamicinformer.Handle
	registration toolscache.ResourceEventHandlerRegistration
}

// newFeedLocked begins to call a handler. The type may be unknown.
func (c *Controllers) newFeedLocked(of Type, options dynamicinformer.ResourceOptions,
	handler toolscache.ResourceEventHandler, onMove func(*dynamicinformer.Informer)) *feed {
	f := &feed{controllers: c, of: of, options: options, handler: handler, onMove: onMove}
	c.feeds[f] = true
	if t, ok := c.types[of.GroupKind]; ok {
		f.resolveLocked(t)
	}
	return f
}

// resolveLocked chooses the version, and changes to its informer.
func (f *feed) resolveLocked(t typesource.Type) {
	version, served := f.of.Version, slices.Concat(t.Versions, t.ListOnly)
	if version == "" && f.gvr.Resource == t.GroupResource.Resource && slices.Contains(served, f.gvr.Version) {
		version = f.gvr.Version
	} else if version == "" {
		version = served[0]
	}
	gvr := t.GroupResource.WithVersion(version)
	if f.handle != nil && gvr == f.gvr {
		return
	}
	next, err := f.controllers.factory.Acquire(gvr, f.options)
	if err != nil {
		return // only after the shutdown of the factory
	}
	if f.detachLocked(); f.handle != nil {
		f.onMove(next.Informer())
	}
	f.handle, f.gvr = next, gvr
	f.registration, _ = next.Informer().AddEventHandler(f.handler) // it fails only after the shutdown
}

// closeLocked ends the calls of the handler.
func (f *feed) closeLocked() {
	delete(f.controllers.feeds, f)
	f.detachLocked()
}

func (f *feed) detachLocked() {
	if f.handle != nil {
		_ = f.handle.Informer().RemoveEventHandler(f.registration) // it is one of this informer
		f.handle.Release()
	}
}

// observeTypes follows the types of the server.
func (c *Controllers) observeTypes() (*dynamicinformer.Subscription, error) {
	s, err := c.factory.Subscribe(dynamicinformer.Selection{Group: "*", Resource: "*",
		Match: func(t typesource.Type) (selected bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			gk := schema.GroupKind{Group: t.GroupResource.Group, Kind: t.Kind}
			c.types[gk] = t
			for f := range c.feeds {
				if f.of.GroupKind == gk {
					f.resolveLocked(t)
				}
			}
			return false
		}}, dynamicinformer.Subscriber{})
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	return s, nil
}
