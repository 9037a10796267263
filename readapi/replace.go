package readapi

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errChanged says that an object is no longer what a write is based on.
var errChanged = errors.New("the object has changed in the meantime")

// basis is the state that a write is based on, which must still be there; its object is nil where there is
// none.
type basis struct{ object *object }

// holds reports whether that is so. Without a basis a write is based on nothing.
func (b *basis) holds(now *object) bool { return b == nil || b.object == now }

// replace puts content in the place of a state, or removes it with nil. The error is errChanged when that
// state is no longer there.
func (s *Storage) replace(gr schema.GroupResource, key string, before *object,
	content map[string]any) (*object, error) {
	if content == nil {
		return nil, s.removeExactly(gr, key, before)
	}
	after, _, err := s.write(content, write{now: s.options.Now(), client: true, basis: &basis{before}})
	return after, err
}

func (s *Storage) removeExactly(gr schema.GroupResource, key string, before *object) error {
	w := write{now: s.options.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	if c == nil || c.objects[key] != before {
		return errChanged
	}
	s.remove(c, key)
	if _, name := splitKey(key); gr == definitions {
		s.undefine(name, w)
	}
	s.settle(w)
	return nil
}
