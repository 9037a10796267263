package readapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SetType adds a type that no CustomResourceDefinition defines, or changes one: its objects stay, and its
// watches end, to be continued by their clients. The error says what is wrong with the type.
func (s *Storage) SetType(t Type) error {
	w := write{now: s.options.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setType(t, "", w)
}

// RemoveType removes a type with all its objects, whose watches are told, and says whether there was one.
func (s *Storage) RemoveType(gr schema.GroupResource) bool {
	w := write{now: s.options.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.types[gr] == nil {
		return false
	}
	s.removeType(gr, w)
	return true
}

// setType adds or changes a type. custom is the name of its definition.
func (s *Storage) setType(t Type, custom string, w write) error {
	if err := t.complete(); err != nil {
		return err
	}
	t.Custom = custom != ""
	gr, gk := t.GroupResource(), t.GroupKind()
	if other := s.mu.kinds[gk]; other != nil && other.typ.GroupResource() != gr {
		return fmt.Errorf("type %s: %s has the kind %s already", gr, other.typ.GroupResource(), t.Names.Kind)
	}
	c := s.mu.types[gr]
	if c != nil && c.typ.Namespaced != t.Namespaced {
		s.removeType(gr, w) // the objects cannot stay
		c = nil
	}
	switch {
	case c == nil:
		c = newCollection(t, s.mu.version)
		s.mu.types[gr] = c
	case reflect.DeepEqual(c.typ, t):
		c.custom = custom
		return nil
	default:
		delete(s.mu.kinds, c.typ.GroupKind())
		c.end()
	}
	c.typ, c.custom = t, custom
	s.mu.kinds[gk] = c
	s.mu.served++
	s.registerServices(t.Group, w)
	return nil
}

func (s *Storage) removeType(gr schema.GroupResource, w write) {
	c := s.mu.types[gr]
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		s.remove(c, key)
	}
	delete(s.mu.types, gr)
	delete(s.mu.kinds, c.typ.GroupKind())
	s.mu.served++
	c.removed = s.mu.version
	c.end()
	s.registerServices(gr.Group, w)
}

// end ends the watches of the type, after what they have not told yet.
func (c *collection) end() {
	close(c.ended)
	c.ended = make(chan struct{})
}
