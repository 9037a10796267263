package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Objects selects objects of a type: those with a name, or with labels, in one namespace or in all.
type Objects struct {
	Namespace, Name string
	Labels          labels.Selector // nil: all
}

// selectionKey identifies the objects of a type that an instance selects.
type selectionKey struct {
	instance types.NamespacedName
	of       Type
}

// Select enqueues an instance, a request of a controller, whenever an object that it selects is created,
// changes or is deleted, and when the first selection of objects has been listed. It replaces the objects of
// this type that the instance has selected before. Call it in each reconcile, before the objects are read: if
// nothing has changed, it costs about a microsecond.
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
	if k == nil || k.queue == nil || k.ctx.Err() != nil {
		return fmt.Errorf("controllers: %s does not run: call Ensure before Select, in a reconcile", name)
	}
	s := selectionKey{instance, t}
	if slices.EqualFunc(k.selections[s], objects, Objects.equal) {
		return nil
	}
	for _, o := range objects {
		if o.Labels != nil && !o.Labels.Empty() && o.Labels.String() == "" {
			return errors.New("controllers: select objects: a selector matches nothing: leave it out")
		}
	}
	k.setSelectionLocked(s, slices.Clone(objects))
	return nil
}

// Unselect ends the selections of an instance: those of the given types, or all of them without types.
func (c *Controllers) Unselect(name string, instance types.NamespacedName, of ...Type) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.controllers[name]; k != nil {
		if of == nil {
			of = slices.Clone(k.selectedTypes[instance])
		}
		for _, t := range of {
			k.setSelectionLocked(selectionKey{instance, t}, nil)
		}
	}
}

// Informer returns the informer with the objects of a type that instances select, to read them. It returns
// nil if there are none, or if the type is not known. The informer of another version may replace it.
func (c *Controllers) Informer(t Type) *dynamicinformer.Informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.parts[t]; p != nil && p.feed.handle != nil {
		return p.feed.handle.Informer()
	}
	return nil
}

func (o Objects) equal(other Objects) bool { return o.key() == other.key() }

// selector returns the selector of the objects.
func (o Objects) selector() dynamicinformer.Selector {
	s := dynamicinformer.Selector{Label: o.Labels}
	var all []fields.Selector
	if o.Name != "" {
		all = append(all, fields.OneTermEqualSelector("metadata.name", o.Name))
	}
	if o.Namespace != "" {
		all = append(all, fields.OneTermEqualSelector("metadata.namespace", o.Namespace))
	}
	if len(all) > 0 {
		s.Field = fields.AndSelectors(all...)
	}
	return s
}

// setSelectionLocked changes the objects that an instance selects.
func (k *running) setSelectionLocked(s selectionKey, objects []Objects) {
	c, previous := k.controllers, k.selections[s]
	if len(objects) > 0 {
		k.selections[s] = objects
		if len(previous) == 0 {
			k.selectedTypes[s.instance] = append(k.selectedTypes[s.instance], s.of)
		}
	} else if len(previous) > 0 {
		delete(k.selections, s)
		others := slices.DeleteFunc(k.selectedTypes[s.instance], func(t Type) bool { return t == s.of })
		if k.selectedTypes[s.instance] = others; len(others) == 0 {
			delete(k.selectedTypes, s.instance)
		}
	} else {
		return
	}
	p := c.parts[s.of]
	if p == nil {
		p = newPart()
		c.parts[s.of] = p
	}
	i := instance{k, s.instance}
	added, removed := p.change(i, previous, objects)
	_ = p.selectors.Add(added...) // it fails only for fields other than the name and the namespace
	if p.feed == nil {
		p.feed = c.newFeedLocked(s.of, dynamicinformer.ResourceOptions{Selectors: p.selectors}, p.handler(),
			func(i *dynamicinformer.Informer) {
				c.lists.Go(func() { p.enqueueAll(c.ctx, i) }) // ended by the list
			})
	}
	if len(added) > 0 && p.feed.handle != nil {
		// The instance may have read an object that was deleted before its list.
		informer := p.feed.handle.Informer()
		c.lists.Go(func() { // ended by the list, or with the controller
			if informer.WaitForSelectors(k.ctx) == nil {
				k.queue.Add(reconcile.Request{NamespacedName: s.instance})
			}
		})
	}
	if p.selectors.Remove(removed...); !p.isEmpty() {
		return
	}
	end := func() {
		if p.isEmpty() && c.parts[s.of] == p {
			delete(c.parts, s.of)
			p.feed.closeLocked()
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

// part has the objects of a type that instances select. Controllers.mu guards the fields outside of mu.
type part struct {
	feed      *feed
	selectors *dynamicinformer.Selectors

	mu struct {
		sync.RWMutex
		// byName are selected by nothing but a name and a namespace, or none; others also by labels.
		byName, others map[objectsKey]*selectedObjects
	}
}

// instance is a request of a controller that selects objects.
type instance struct {
	controller *running
	name       types.NamespacedName
}

// selectedObjects are Objects with the instances that select them.
type selectedObjects struct {
	Objects
	instances map[instance]struct{}
}

// objectsKey identifies Objects.
type objectsKey struct{ namespace, name, labels string }

func newPart() *part {
	p := &part{selectors: dynamicinformer.NewSelectors()}
	p.mu.byName, p.mu.others = map[objectsKey]*selectedObjects{}, map[objectsKey]*selectedObjects{}
	return p
}

func (o Objects) key() objectsKey {
	k := objectsKey{namespace: o.Namespace, name: o.Name}
	if o.Labels != nil {
		k.labels = o.Labels.String()
	}
	return k
}

// tableLocked returns the table with the objects of a key.
func (p *part) tableLocked(k objectsKey) map[objectsKey]*selectedObjects {
	if k.labels == "" {
		return p.mu.byName
	}
	return p.mu.others
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
		table := p.tableLocked(key)
		if table[key] == nil {
			table[key] = &selectedObjects{o, map[instance]struct{}{}}
			added = append(added, o.selector())
		}
		table[key].instances[i] = struct{}{}
	}
	for _, o := range before {
		key := o.key()
		table := p.tableLocked(key)
		if keys[key] || table[key] == nil {
			continue
		}
		if delete(table[key].instances, i); len(table[key].instances) == 0 {
			delete(table, key)
			removed = append(removed, o.selector())
		}
	}
	return added, removed
}

func (p *part) isEmpty() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.mu.byName)+len(p.mu.others) == 0
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

// enqueueAll enqueues all instances when an informer has listed the selected objects.
func (p *part) enqueueAll(ctx context.Context, i *dynamicinformer.Informer) {
	if i.WaitForSelectors(ctx) != nil {
		return
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, table := range []map[objectsKey]*selectedObjects{p.mu.byName, p.mu.others} {
		for _, s := range table {
			for selecting := range s.instances {
				selecting.controller.queue.Add(reconcile.Request{NamespacedName: selecting.name})
			}
		}
	}
}

// enqueue enqueues the instances that select an object.
func (p *part) enqueue(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if o, ok := object.(client.Object); ok {
		for i := range p.instancesOf(o) {
			i.controller.queue.Add(reconcile.Request{NamespacedName: i.name})
		}
	}
}

// instancesOf returns the instances that select an object.
func (p *part) instancesOf(o client.Object) map[instance]struct{} {
	namespace, name, set := o.GetNamespace(), o.GetName(), labels.Set(o.GetLabels())
	found := map[instance]struct{}{}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, key := range []objectsKey{{}, {name: name}, {namespace: namespace},
		{namespace: namespace, name: name}} {
		if s := p.mu.byName[key]; s != nil {
			maps.Copy(found, s.instances)
		}
	}
	for _, s := range p.mu.others {
		if (s.Namespace == "" || s.Namespace == namespace) && (s.Name == "" || s.Name == name) &&
			s.Labels.Matches(set) {
			maps.Copy(found, s.instances)
		}
	}
	return found
}
