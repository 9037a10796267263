package apiserver

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// Rules are the rules for writes of a built-in type, where they differ from the rules of custom resources.
// The zero value is for custom resources.
type Rules struct {
	// NoGeneration: objects have no metadata.generation.
	NoGeneration bool
	// UnconditionalUpdate: an update without a resource version replaces any state.
	UnconditionalUpdate bool
	// CreateOnUpdate: an update creates a missing object.
	CreateOnUpdate bool
	// AnyName: a name can be any part of a path, such as "system:node" of a role, not only a DNS subdomain.
	AnyName bool
	// AnyFinalizer: finalizers need no domain, as with custom resources.
	AnyFinalizer bool
	// RefusalReason is the reason why clients cannot write objects of the type; empty if they can.
	RefusalReason string
}

// SetType adds or changes a type without a CustomResourceDefinition. If the type changes, its objects stay
// and its watches end. The error describes an invalid type.
func (s *Storage) SetType(t readapi.Type) error { return s.SetBuiltIn(t, Rules{}) }

// SetBuiltIn works like SetType for a built-in type. Its writes differ from writes of custom resources.
func (s *Storage) SetBuiltIn(t readapi.Type, rules Rules) error {
	now := s.options.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setType(t, rules, "", now)
}

// RemoveType removes a type with all objects, notifies their watches, and reports whether the type existed.
func (s *Storage) RemoveType(gr schema.GroupResource) bool {
	now := s.options.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.types[gr] == nil {
		return false
	}
	s.removeType(gr, now)
	return true
}

// EndWatches ends the watches of a type before they send later changes, so that clients send new requests.
func (s *Storage) EndWatches(gr schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.mu.types[gr]; c != nil {
		*c.lastVersion = s.mu.version
		c.endWatches()
	}
}

// setType adds or changes a type. definition is the name of its CustomResourceDefinition, or empty.
func (s *Storage) setType(t readapi.Type, rules Rules, definition string, now time.Time) error {
	if err := t.Complete(); err != nil {
		return err
	}
	t.Custom = definition != ""
	gr, gk := t.GroupResource(), t.GroupKind()
	if other := s.mu.kinds[gk]; other != nil && other.typ.GroupResource() != gr {
		return fmt.Errorf("type %s: %s already has the kind %s", gr, other.typ.GroupResource(), t.Names.Kind)
	}
	c := s.mu.types[gr]
	if c != nil && c.typ.Namespaced != t.Namespaced {
		s.removeType(gr, now) // the objects cannot change their scope
		c = nil
	}
	switch {
	case c == nil:
		c = newCollection(s.mu.version)
		s.mu.types[gr] = c
	case reflect.DeepEqual(c.typ, t):
		c.rules, c.definition = rules, definition
		return nil
	default:
		delete(s.mu.kinds, c.typ.GroupKind())
		c.endWatches()
	}
	c.typ, c.rules, c.definition = t, rules, definition
	if s.options.Select != nil {
		c.separateVersions(s.mu.version)
	}
	s.mu.kinds[gk] = c
	s.mu.typesVersion++
	s.registerServices(t.Group, now)
	return nil
}

func (s *Storage) removeType(gr schema.GroupResource, now time.Time) {
	c := s.mu.types[gr]
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		s.remove(c, key)
	}
	delete(s.mu.types, gr)
	delete(s.mu.kinds, c.typ.GroupKind())
	s.mu.typesVersion++
	c.removedAtVersion = s.mu.version
	for _, inVersion := range c.inVersion {
		inVersion.removedAtVersion = s.mu.version
	}
	c.endWatches()
	s.registerServices(gr.Group, now)
}

func (s *Storage) removeDefinedType(definition string, now time.Time) {
	for gr, c := range s.mu.types {
		if c.definition == definition {
			s.removeType(gr, now)
		}
	}
}

// collectionOf returns the collection of a kind. The error is an *UnknownTypeError.
func (s *Storage) collectionOf(gvk schema.GroupVersionKind) (*collection, error) {
	c := s.mu.kinds[gvk.GroupKind()]
	if c == nil {
		return nil, &UnknownTypeError{GVK: gvk}
	}
	if c.typ.Version(gvk.Version) == nil {
		served := naming.Texts(c.typ.Versions, func(v readapi.Version) string { return v.Name })
		return nil, &UnknownTypeError{GVK: gvk, Served: served}
	}
	return c, nil
}
