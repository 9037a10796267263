package controllers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
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

// Objects selects objects of a type by name or by labels, in one namespace or in all.
type Objects struct {
	Namespace, Name string
	Labels          labels.Selector // nil: all
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
	if k == nil || k.ended == nil || k.ctx.Err() != nil {
		return fmt.Errorf("controllers: %s does not run: call Ensure before Select, in a reconcile", name)
	}
	if slices.EqualFunc(k.selections[instance][t], objects,
		func(a, b Objects) bool { return a.key() == b.key() }) {
		return nil
	}
	for _, o := range objects {
		if o.Labels != nil && !o.Labels.Empty() && o.Labels.String() == "" {
			return errors.New("controllers: select objects: a selector matches nothing: leave it out")
		}
	}
	k.setSelectionLocked(instance, t, slices.Clone(objects))
	return nil
}

// Unselect ends the selections of an instance for the given types, or for all types if none is given.
func (c *Controllers) Unselect(name string, instance types.NamespacedName, of ...Type) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.controllers[name]; k != nil {
		if of == nil {
			of = slices.Collect(maps.Keys(k.selections[instance]))
		}
		for _, t := range of {
			k.setSelectionLocked(instance, t, nil)
		}
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

// selector returns the selector of the objects.
func (o Objects) selector() dynamicinformer.Selector {
	all := fields.Set{"metadata.name": o.Name, "metadata.namespace": o.Namespace}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return dynamicinformer.Selector{Label: o.Labels, Field: all.AsSelector()}
}

// setSelectionLocked changes the objects that an instance selects.
func (k *running) setSelectionLocked(name types.NamespacedName, of Type, objects []Objects) {
	c, byType := k.controllers, k.selections[name]
	previous := byType[of]
	switch {
	case len(objects)+len(previous) == 0:
		return
	case byType == nil:
		k.selections[name] = map[Type][]Objects{of: objects}
	case len(objects) > 0:
		byType[of] = objects
	case len(byType) > 1:
		delete(byType, of)
	default:
		delete(k.selections, name)
	}
	p := c.parts[of]
	if p == nil {
		p = newPart(of)
		c.parts[of] = p
	}
	i := instance{k, name}
	added, removed := p.change(i, previous, objects)
	_ = p.selectors.Add(added...) // it fails only for fields other than the name and the namespace
	if t, ok := c.types[of.GroupKind]; ok && p.current == nil {
		p.resolveLocked(c, t)
	}
	if len(objects) > 0 && p.current != nil {
		informer := p.current.Informer()
		if now := informer.Status(); now.State != status.Pending && len(added)+now.UnlistedSelectors > 0 {
			c.lists.Go(func() { // ended by the list, or with the controller
				if informer.WaitForSelectors(k.ctx) == nil {
					enqueue(map[instance]struct{}{i: {}})
				}
			})
		}
	}
	if p.selectors.Remove(removed...); len(p.mu.selected) > 0 {
		return
	}
	end := func() {
		if len(p.mu.selected) == 0 && c.parts[of] == p {
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
			for _, s := range p.mu.selected {
				enqueue(s.instances)
			}
		}
	}
}

// part has the objects of a type that instances select. Controllers.mu guards the fields outside of mu.
type part struct {
	of        Type
	selectors *dynamicinformer.Selectors
	informers map[schema.GroupVersionResource]*dynamicinformer.Handle
	current   *dynamicinformer.Handle // nil until the type is known

	// Controllers.mu is also held when it changes.
	mu struct {
		sync.RWMutex
		selected map[objectsKey]*selectedObjects
		// buckets have the selected objects by properties that all of their objects have, so that an event is
		// compared with few label selectors.
		buckets map[bucket]map[*selectedObjects]struct{}
	}
}

func newPart(of Type) *part {
	p := &part{of: of, selectors: dynamicinformer.NewSelectors(),
		informers: map[schema.GroupVersionResource]*dynamicinformer.Handle{}}
	p.mu.selected = map[objectsKey]*selectedObjects{}
	p.mu.buckets = map[bucket]map[*selectedObjects]struct{}{}
	return p
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
	_, _ = handle.Informer().AddEventHandler(p.handler()) // it fails only after the shutdown
}

// instance is a request of a controller that selects objects.
type instance struct {
	controller *running
	name       types.NamespacedName
}

// selectedObjects are Objects with the instances that select them.
type selectedObjects struct {
	Objects
	bucket    bucket
	instances map[instance]struct{}
}

// objectsKey identifies Objects.
type objectsKey struct{ namespace, name, labels string }

// bucket has the namespace, the name and one label of objects. An empty field matches any.
type bucket struct{ namespace, name, label, value string }

func (o Objects) key() objectsKey {
	k := objectsKey{namespace: o.Namespace, name: o.Name}
	if o.Labels != nil {
		k.labels = o.Labels.String()
	}
	return k
}

// bucketLocked returns the smallest bucket for objects. Instances often have one label in common, such as
// the name of the program, and another one of their own.
func (p *part) bucketLocked(o Objects) bucket {
	smallest := bucket{namespace: o.Namespace, name: o.Name}
	if o.Labels == nil {
		return smallest
	}
	requirements, _ := o.Labels.Requirements()
	for _, r := range requirements {
		values := r.ValuesUnsorted()
		isEquality := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals ||
			r.Operator() == selection.In
		b := bucket{o.Namespace, o.Name, r.Key(), ""}
		if isEquality && len(values) == 1 {
			b.value = values[0]
			if smallest.label == "" || len(p.mu.buckets[b]) < len(p.mu.buckets[smallest]) {
				smallest = b
			}
		}
	}
	return smallest
}

// change replaces the objects of an instance. It returns the selectors that no instance had before, and those
// that no instance has any more.
func (p *part) change(i instance, before, after []Objects) (added, removed []dynamicinformer.Selector) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := map[objectsKey]bool{}
	for _, o := range after {
		key := o.key()
		keys[key] = true
		s := p.mu.selected[key]
		if s == nil {
			s = &selectedObjects{o, p.bucketLocked(o), map[instance]struct{}{}}
			p.mu.selected[key] = s
			if p.mu.buckets[s.bucket] == nil {
				p.mu.buckets[s.bucket] = map[*selectedObjects]struct{}{}
			}
			p.mu.buckets[s.bucket][s] = struct{}{}
			added = append(added, o.selector())
		}
		s.instances[i] = struct{}{}
	}
	for _, o := range before {
		key := o.key()
		s := p.mu.selected[key]
		if keys[key] || s == nil {
			continue
		}
		if delete(s.instances, i); len(s.instances) == 0 {
			delete(p.mu.selected, key)
			if delete(p.mu.buckets[s.bucket], s); len(p.mu.buckets[s.bucket]) == 0 {
				delete(p.mu.buckets, s.bucket)
			}
			removed = append(removed, o.selector())
		}
	}
	return added, removed
}

// handler returns the handler that enqueues the instances of objects. It decodes nothing.
func (p *part) handler() toolscache.ResourceEventHandler {
	return dynamicinformer.Named("controllers: selected objects",
		dynamicinformer.MetadataOnly(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    p.enqueue,
			UpdateFunc: func(before, after any) { p.enqueue(before); p.enqueue(after) },
			DeleteFunc: p.enqueue,
		}))
}

// enqueue enqueues the instances that select an object.
func (p *part) enqueue(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if o, ok := object.(client.Object); ok {
		enqueue(p.instancesOf(o))
	}
}

func enqueue(instances map[instance]struct{}) {
	for i := range instances {
		i.controller.queue.Add(reconcile.Request{NamespacedName: i.name})
	}
}

// instancesOf returns the instances that select an object.
func (p *part) instancesOf(o client.Object) map[instance]struct{} {
	namespace, name, set := o.GetNamespace(), o.GetName(), labels.Set(o.GetLabels())
	found := map[instance]struct{}{}
	p.mu.RLock()
	defer p.mu.RUnlock()
	addBucket := func(b bucket) {
		for s := range p.mu.buckets[b] {
			if s.Labels == nil || s.Labels.Matches(set) {
				maps.Copy(found, s.instances)
			}
		}
	}
	for _, b := range []bucket{{}, {name: name}, {namespace: namespace}, {namespace: namespace, name: name}} {
		addBucket(b)
		for b.label, b.value = range set {
			addBucket(b)
		}
	}
	return found
}
