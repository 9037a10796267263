package subject

import "context"

// Cache is a cache of one type. Sync is called once, and the cache runs until its context ends.
type Cache interface {
	// Sync starts the cache. It returns when the cache has all objects and the handler has received them.
	Sync(ctx context.Context) error
	// Len returns the number of objects.
	Len() int
}

// Settler is a cache with background work after its sync.
type Settler interface {
	Cache
	// Settle waits for the end of the background work.
	Settle(ctx context.Context) error
}

// Reader is a cache that can be read. Callers must not keep the objects.
type Reader interface {
	Cache
	// Keys returns the keys of all objects.
	Keys() []string
	// Get returns the object of a key as the library returns it to users.
	Get(key string) (any, error)
	// List returns the number of objects in the library's lister.
	List() (int, error)
	// ByNamespace returns the number of objects of a namespace in the library's index.
	ByNamespace(namespace string) (int, error)
	// AddIndex adds an index of a field with unique values.
	AddIndex() error
	// ByIndex returns the only object with a value in that index.
	ByIndex(value string) (any, error)
}
