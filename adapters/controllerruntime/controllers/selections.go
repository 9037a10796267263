package controllers

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// Type is a kind of objects, which need not be installed.
type Type struct {
	schema.GroupKind
	// Version is the version to watch. Default: the one that the server prefers. When the server no longer
	// serves it, another takes over.
	Version string
}

// Select enqueues an instance, a request of a controller, whenever an object that it selects is created,
// changes or is deleted, when the type comes or goes, and when selected objects have first been listed. It
// replaces the objects of this type that the instance has selected before. Call it in each reconcile, before
// the objects are read: if nothing has changed, it costs about a microsecond.
//
// All instances that select objects of a type share one watch, which receives the selected objects, and the
// objects of new instances are listed alone. For objects that are selected already, Select enqueues nothing.
// The selection ends with Unselect, with the deletion of the instance, or with Stop. The last one of a type
// ends its watch after Options.Linger.
//
// Select does not wait. It returns an error for a controller that does not run, and for selectors that match
// nothing.
func (c *Controllers) Select(name string, t Type, instance types.NamespacedName, objects ...Objects) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.controllers[name]
	if k == nil || k.ctx.Err() != nil {
		return fmt.Errorf("controllers: %s does not run: call Ensure before Select, in a reconcile", name)
	}
	if slices.ContainsFunc(objects, func(o Objects) bool { return o.Labels == labels.Nothing() }) {
		return errors.New("controllers: select objects: a selector matches nothing: leave it out")
	}
	k.setSelectionLocked(instance, t, objects)
	return nil
}

// Unselect ends the selections of an instance for the given types, or for all types if none is given.
func (c *Controllers) Unselect(name string, instance types.NamespacedName, of ...Type) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.controllers[name]; k != nil {
		k.unselectLocked(instance, of...)
	}
}

func (k *running) unselectLocked(instance types.NamespacedName, of ...Type) {
	if of == nil {
		of = k.selections[instance].UnsortedList()
	}
	for _, t := range of {
		k.setSelectionLocked(instance, t, nil)
	}
}

// forget ends the selections of a deleted instance, also those that its running reconcile still makes.
func (k *running) forget(instance types.NamespacedName) {
	k.controllers.mu.Lock()
	defer k.controllers.mu.Unlock()
	k.unselectLocked(instance)
	if _, runs := k.reconciling[instance]; runs {
		k.reconciling[instance] = true
	}
}

// Informer returns the informer with the objects of a type that instances select, to read them. It returns
// nil if there are none, or if the type is not known.
func (c *Controllers) Informer(t Type) *dynamicinformer.Informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.parts[t]; p != nil && p.current != nil {
		return p.current.Informer()
	}
	return nil
}

// Kind returns the kind of a type with the version to read: Type.Version, or the one that the server prefers
// now. ok is false if there is none, because the type has never been installed.
func (c *Controllers) Kind(t Type) (kind schema.GroupVersionKind, ok bool) {
	c.mu.Lock()
	served := slices.Concat(c.types[t.GroupKind].Versions, c.types[t.GroupKind].ListOnly)
	c.mu.Unlock()
	if t.Version == "" && len(served) > 0 {
		t.Version = served[0]
	}
	return t.WithVersion(t.Version), t.Version != ""
}

// setSelectionLocked changes the objects that an instance selects.
func (k *running) setSelectionLocked(name types.NamespacedName, of Type, objects []Objects) {
	c, i := k.controllers, instance{k, name}
	p := c.parts[of]
	if p == nil {
		p = &part{of: of, selectors: dynamicinformer.NewSelectors(),
			informers: map[schema.GroupVersionResource]*dynamicinformer.Handle{}}
	}
	if p.owners.selects(i, objects) {
		return
	}
	c.parts[of] = p
	switch others := k.selections[name].Delete(of); {
	case len(objects) > 0:
		k.selections[name] = sets.New(of).Union(others)
	case len(others) == 0:
		delete(k.selections, name)
	}
	added, removed := p.owners.Set(i, objects...)
	_ = p.selectors.Add(added...) // it fails only for fields other than the name and the namespace
	if t, ok := c.types[of.GroupKind]; ok && p.current == nil {
		p.resolveLocked(c, t)
	}
	if len(objects) > 0 && p.current != nil {
		informer := p.current.Informer()
		if now := informer.Status(); now.State != status.Pending && len(added)+now.UnlistedSelectors > 0 {
			c.lists.Go(func() { // ended by the list, or with the controller
				if informer.WaitForSelectors(k.ctx) == nil {
					i.enqueue()
				}
			})
		}
	}
	if p.selectors.Remove(removed...); p.owners.Len() > 0 {
		return
	}
	end := func() {
		if p.owners.Len() == 0 && c.parts[of] == p {
			delete(c.parts, of)
			for _, handle := range p.informers {
				handle.Release() // nothing else has these selectors
			}
		}
	}
	if c.options.Linger <= 0 {
		end()
		return
	}
	time.AfterFunc(c.options.Linger, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		end()
	})
}

// enqueueAll enqueues the instances that select objects of a type when its first list is in the cache, and
// when the type is gone: they may have read objects that the watch never showed.
func (c *Controllers) enqueueAll(of status.Incarnation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		if p.current != nil && p.current == p.informers[of.GVR] {
			for i := range p.owners.objects { // which changes with c.mu locked
				i.enqueue()
			}
		}
	}
}

// part has the objects of a type that instances select. Controllers.mu guards it.
type part struct {
	of        Type
	selectors *dynamicinformer.Selectors
	informers map[schema.GroupVersionResource]*dynamicinformer.Handle
	current   *dynamicinformer.Handle // nil until the type is known
	owners    Owners[instance]        // Of needs no lock
}

// observeType makes the type known to selections. It selects nothing.
func (c *Controllers) observeType(t typesource.Type) (selected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gk := schema.GroupKind{Group: t.GroupResource.Group, Kind: t.Kind}
	c.types[gk] = t
	for of, p := range c.parts {
		if of.GroupKind == gk {
			p.resolveLocked(c, t)
		}
	}
	return false
}

// resolveLocked watches the selected objects of a type. A kind that is installed again can have another
// resource, and the informer of the former one deletes its objects.
func (p *part) resolveLocked(c *Controllers, t typesource.Type) {
	gvr := t.GroupResource.WithVersion(p.of.Version)
	if p.current = p.informers[gvr]; p.current != nil {
		return
	}
	options := dynamicinformer.ResourceOptions{Selectors: p.selectors}
	if p.of.Version == "" {
		options.Versions = dynamicinformer.PreferredVersion()
	}
	handle, err := c.factory.Acquire(gvr, options)
	if err != nil {
		return // only after the shutdown of the factory
	}
	p.current, p.informers[gvr] = handle, handle
	handler := dynamicinformer.MetadataOnly(toolscache.ResourceEventHandlerFuncs{AddFunc: p.enqueue,
		UpdateFunc: func(before, after any) { p.enqueue(before); p.enqueue(after) }, DeleteFunc: p.enqueue})
	_, _ = handle.Informer().AddEventHandler( // it fails only after the shutdown
		dynamicinformer.Named("controllers: selected objects", handler))
}

// instance is a request of a controller.
type instance struct {
	controller *running
	name       types.NamespacedName
}

// enqueue enqueues the instances that select an object.
func (p *part) enqueue(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if o, ok := object.(client.Object); ok {
		for i := range p.owners.Of(o.GetNamespace(), o.GetName(), o.GetLabels()) {
			i.enqueue()
		}
	}
}

func (i instance) request() reconcile.Request { return reconcile.Request{NamespacedName: i.name} }

func (i instance) enqueue() { i.controller.queue.Add(i.request()) }
