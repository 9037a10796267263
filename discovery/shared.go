package discovery

import (
	"runtime"
	"sync"
	"weak"
)

// sharedValues has immutable values by the keys that determine them, so that the clients of many equal
// clusters share them. It keeps no value alive.
type sharedValues[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// get returns the value of a key, which build makes if there is none.
func (s *sharedValues[K, V]) get(key K, build func() (*V, error)) (*V, error) {
	if value := s.lookup(key); value != nil {
		return value, nil
	}
	value, err := build()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[K]weak.Pointer[V]{}
	}
	s.values[key] = weak.Make(value)
	runtime.AddCleanup(value, s.forget, key)
	return value, nil
}

func (s *sharedValues[K, V]) lookup(key K) *V {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key].Value()
}

// forget removes a value that nothing uses.
func (s *sharedValues[K, V]) forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[key].Value() == nil {
		delete(s.values, key)
	}
}

var (
	// sharedDocuments has documents by the hashes of their texts.
	sharedDocuments sharedValues[[32]byte, documentGroups]
	sharedContents  sharedValues[contentKey, catalogContent]
)

// contentKey has the documents of a catalog.
type contentKey struct{ core, groups weak.Pointer[documentGroups] }
