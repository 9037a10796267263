package informer

import "k8s.io/client-go/tools/cache"

// Item is what a Store keeps of one object and what the queues carry. meta.Accessor must work on it without
// decoding a body: the informer reads resourceVersion and UID of every item it replaces.
type Item = any

// Prepared is one object made ready for the store: everything that costs time or runs foreign code (index
// functions, packing) has been done.
type Prepared struct {
	// Key is the object's storage key.
	Key string
	// Item is what will be kept.
	Item Item
	// ResourceVersion is the object's, or empty when it has none.
	ResourceVersion string

	// values holds the index values, one list for each index of the store at that version.
	values  [][]string
	version uint32
}

// Change is one difference that a Replace made: Old is nil for a new key, New is nil for a key that went.
type Change struct {
	Key      string
	Old, New Item
}

// Store keeps the objects of one Informer with their indexes. It is safe for concurrent use; index functions
// never run under its locks. An Informer knows its store by this interface alone, so that another way to keep
// objects needs no change in delivery.
type Store interface {
	// Prepare readies objects for Put and Replace. An index function that fails is reported once per call and
	// the object is left out of that index.
	Prepare(objects ...Keyed) []Prepared
	// PrepareOne is Prepare for a single object.
	PrepareOne(object Keyed) Prepared
	// Put stores one prepared object and returns what it replaces (nil when the key is new). It refuses
	// (ok is false, nothing happened) when indexers were added since the object was prepared: prepare it again.
	Put(p Prepared) (old Item, ok bool)
	// Remove deletes a key and returns what was there, or nil. A resourceVersion that is not empty is remembered.
	Remove(key, resourceVersion string) (old Item)
	// Replace swaps the whole content at once and returns the differences: first what went, then the new
	// content in the order given. Of several objects with one key the last counts. It refuses as Put does.
	Replace(all []Prepared, resourceVersion string) (changes []Change, ok bool)
	// SetResourceVersion remembers the resource version that the content is known to be at.
	SetResourceVersion(resourceVersion string)

	// AddIndexers adds index functions over present and future objects, all or none; readers see the new
	// indexes complete. It fails when a name is taken.
	AddIndexers(indexers cache.Indexers) error
	// Indexers returns a copy of the index functions.
	Indexers() cache.Indexers

	// Len counts the objects.
	Len() int
	// Get returns the item of a key.
	Get(key string) (Item, bool)
	// Items returns all items, and Keys all keys, each from one snapshot and in no particular order.
	Items() []Item
	Keys() []string
	// ItemsByIndex and KeysByIndex return the items (or keys) under one value of an index; both fail with
	// *IndexNotFoundError.
	ItemsByIndex(name, value string) ([]Item, error)
	KeysByIndex(name, value string) ([]string, error)
	// ItemsByIndexOf returns the items that share at least one value of the index with the object.
	ItemsByIndexOf(name string, object any) ([]Item, error)
	// IndexValues returns all values of an index; none when it does not exist.
	IndexValues(name string) []string
	// ResourceVersion returns the one remembered last.
	ResourceVersion() string

	// Item turns an object into what the store would keep of it.
	Item(object any) Item
	// Object turns an item into the object that handlers and readers get: shared and read-only.
	Object(item Item) any
}

// Keyed is an object with its storage key and resource version.
type Keyed struct {
	Key, ResourceVersion string
	Object               any
}
