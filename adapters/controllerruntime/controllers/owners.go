package controllers

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Objects selects objects of a type by name or by labels, in one namespace or in all.
type Objects struct {
	Namespace, Name string
	Labels          labels.Selector // nil: all
}

// Owners maps objects of one type to the owners that select them, as Select does, for programs with their own
// queues. Of compares an object with few label selectors. The zero value has no owners. It is safe for
// concurrent use.
type Owners[K comparable] struct {
	mu sync.RWMutex
	// objects has those that each owner selects. Only Set replaces the slices.
	objects  map[K][]Objects
	selected map[objectsKey]*selectedObjects[K]
	// buckets have the selected objects by properties that all of their objects have, so that an event is
	// compared with few label selectors.
	buckets map[bucket]map[*selectedObjects[K]]struct{}
}

// selectedObjects are Objects with the owners that select them.
type selectedObjects[K comparable] struct {
	Objects
	bucket bucket
	owners map[K]struct{}
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

// selector returns the selector of the objects.
func (o Objects) selector() dynamicinformer.Selector {
	all := fields.Set{"metadata.name": o.Name, "metadata.namespace": o.Namespace}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return dynamicinformer.Selector{Label: o.Labels, Field: all.AsSelector()}
}

// bucketLocked returns the smallest bucket for objects. Owners often have one label in common, such as the
// name of the program, and another one of their own.
func (s *Owners[K]) bucketLocked(o Objects) bucket {
	smallest := bucket{namespace: o.Namespace, name: o.Name}
	if o.Labels == nil {
		return smallest
	}
	requirements, _ := o.Labels.Requirements()
	for _, r := range requirements {
		value, isExact := o.Labels.RequiresExactMatch(r.Key())
		b := bucket{o.Namespace, o.Name, r.Key(), value}
		if isExact && (smallest.label == "" || len(s.buckets[b]) < len(s.buckets[smallest])) {
			smallest = b
		}
	}
	return smallest
}

// Set replaces the objects that an owner selects; without objects, it is no owner any more. It returns the
// selectors of those that no owner has selected before, and of those that none selects any more, for
// dynamicinformer.Selectors.
func (s *Owners[K]) Set(owner K, objects ...Objects) (added, removed []dynamicinformer.Selector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects == nil {
		s.objects, s.selected = map[K][]Objects{}, map[objectsKey]*selectedObjects[K]{}
		s.buckets = map[bucket]map[*selectedObjects[K]]struct{}{}
	}
	before, keys := s.objects[owner], map[objectsKey]bool{}
	if delete(s.objects, owner); len(objects) > 0 {
		s.objects[owner] = slices.Clone(objects)
	}
	for _, o := range objects {
		key := o.key()
		keys[key] = true
		found := s.selected[key]
		if found == nil {
			found = &selectedObjects[K]{o, s.bucketLocked(o), map[K]struct{}{}}
			s.selected[key] = found
			if s.buckets[found.bucket] == nil {
				s.buckets[found.bucket] = map[*selectedObjects[K]]struct{}{}
			}
			s.buckets[found.bucket][found] = struct{}{}
			added = append(added, o.selector())
		}
		found.owners[owner] = struct{}{}
	}
	for _, o := range before {
		key := o.key()
		found := s.selected[key]
		if keys[key] || found == nil {
			continue
		}
		if delete(found.owners, owner); len(found.owners) == 0 {
			delete(s.selected, key)
			if delete(s.buckets[found.bucket], found); len(s.buckets[found.bucket]) == 0 {
				delete(s.buckets, found.bucket)
			}
			removed = append(removed, o.selector())
		}
	}
	return added, removed
}

// Len returns the number of owners.
func (s *Owners[K]) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// selects reports whether an owner selects exactly these objects.
func (s *Owners[K]) selects(owner K, objects []Objects) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.EqualFunc(s.objects[owner], objects, func(a, b Objects) bool { return a.key() == b.key() })
}

// Of returns the owners that select an object. The caller may change the map.
func (s *Owners[K]) Of(namespace, name string, set labels.Set) map[K]struct{} {
	found := map[K]struct{}{}
	s.mu.RLock()
	defer s.mu.RUnlock()
	addBucket := func(b bucket) {
		for o := range s.buckets[b] {
			if o.Labels == nil || o.Labels.Matches(set) {
				maps.Copy(found, o.owners)
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
