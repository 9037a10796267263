package subject

import "context"

// Cache is a cache of one type. Sync is called once, and the cache runs from then on until the context that
// was given to it ends.
type Cache interface {
	// Sync starts the cache and returns when it holds all objects and the handler has been told of them.
	Sync(ctx context.Context) error
	// Len counts the objects.
	Len() int
}

// Settler is a cache that goes on working after it has synced.
type Settler interface {
	Cache
	// Settle returns when the cache is as it will be at rest.
	Settle(ctx context.Context) error
}

// Reader is a cache that can be read. The objects it hands out are looked at by the caller and not kept.
type Reader interface {
	Cache
	// Keys returns the keys of all objects.
	Keys() []string
	// Get returns the object of a key as the library's users get it.
	Get(key string) (any, error)
	// List returns how many objects the library's lister gives.
	List() (int, error)
	// ByNamespace returns how many objects of a namespace the library's index gives.
	ByNamespace(namespace string) (int, error)
	// AddIndex adds the index of a field with a value of its own in each object.
	AddIndex() error
	// ByIndex returns the only object of a value of that index.
	ByIndex(value string) (any, error)
}
