package jsontext

import (
	"runtime"
	"sync"
	"weak"
)

// Shared has values that their keys determine, such as decoded documents. All users of a key share one value,
// which is immutable or synchronized. Shared keeps no value alive. It is safe for concurrent use.
type Shared[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// Get returns the value of a key, which build makes if there is none. It is not locked during build.
func (s *Shared[K, V]) Get(key K, build func() (*V, error)) (*V, error) {
	s.mu.Lock()
	found := s.values[key].Value()
	s.mu.Unlock()
	if found != nil {
		return found, nil
	}
	built, err := build()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.values[key].Value(); found != nil { // of another caller
		return found, nil
	}
	if s.values == nil {
		s.values = map[K]weak.Pointer[V]{}
	}
	s.values[key] = weak.Make(built)
	runtime.AddCleanup(built, s.forget, key)
	return built, nil
}

// forget removes a value that was freed, unless another one has taken its place.
func (s *Shared[K, V]) forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[key].Value() == nil {
		delete(s.values, key)
	}
}
