package readapi

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Backend is what a handler serves: which types there are, and their objects. A Storage is one; others may
// stand on a cache of a real cluster. Its methods, and those of what they return, must be safe for concurrent
// use and must not wait.
type Backend interface {
	// ServedTypes returns all types by group and plural, and a number that changes whenever they do. The
	// handler does not change what they refer to.
	ServedTypes() (types []Type, generation uint64)
	// Collection returns the objects of a type as it is served now, or nil when there is no such type.
	Collection(schema.GroupResource) Collection
}

// Collection is the objects of one type.
type Collection interface {
	// Type is what is served. It does not change: who changes a type makes another collection, or ends the
	// watches.
	Type() Type
	// Ended is closed when the type changes or goes: watches end then, after what they have not told yet.
	Ended() <-chan struct{}
	// ResourceVersion is that of the newest state.
	ResourceVersion() uint64
	// Get returns the object of a key, or nil.
	Get(key string) Object
	// Snapshot returns the objects as they were at a version, which is not newer than ResourceVersion; 0
	// stands for the newest. It returns nil when that state is forgotten.
	Snapshot(version uint64) Snapshot
	// Since returns the changes after a version.
	Since(version uint64) Changes
}

// Object is one state of an object. It never changes, and different states are not equal (==).
type Object interface {
	// Key is "namespace/name", or the name alone. Its order is that of lists.
	Key() string
	// Version is the name of the version that the object was written in: "v1".
	Version() string
	// Labels are the labels of the object.
	Labels() labels.Labels
	// JSON is the object, with any apiVersion or none. It must not be changed.
	JSON() ([]byte, error)
	// AppendJSON appends the object with this apiVersion, which is written in JSON with its quotes.
	AppendJSON(dst []byte, apiVersion string) ([]byte, error)
}

// ListItem is what an Object may be besides where it looks otherwise as an item of a list: a kube-apiserver
// writes those of built-in types without kind and apiVersion.
type ListItem interface {
	Object
	// AppendItem appends the object as an item of a list.
	AppendItem(dst []byte) ([]byte, error)
}

// Fields is what a Collection may be besides where its objects have fields that field selectors may name in
// addition to those of the type. An object may have several values in one: it is selected if it has that of
// "=", or has not that of "!=".
type Fields interface {
	// Field returns the condition on objects that they have a value in a field; nil where there is no such
	// field. The error says what is wrong with the value.
	Field(name, value string) (func(Object) bool, error)
}

// Filter is a Collection whose lists and watches have only the selected objects. Get does not consult it.
type Filter interface {
	Collection
	Selects(Object) bool
}

// FieldRange is what a Snapshot of such a Collection may be besides, so that not every object has to be
// looked at.
type FieldRange interface {
	// RangeField is Range for the objects that have a value in a field; false where they are not known.
	RangeField(field, value, from, to string) (iter.Seq[Object], bool)
}

// Snapshot is the objects of a type at one moment.
type Snapshot interface {
	// ResourceVersion is that of the moment.
	ResourceVersion() uint64
	// Range yields, by key, the objects whose key is at least from and below to; without a to there is no
	// end.
	Range(from, to string) iter.Seq[Object]
	// Count is how many these are.
	Count(from, to string) int
}

// Change is one step in the history of an object. Before and After are nil where it did not or does not
// exist.
type Change struct {
	ResourceVersion uint64
	Before, After   Object
}

// Changes are what became of a type after a resource version.
type Changes struct {
	// Oldest is the version from which on changes are known. Who asks for those since an older one has to
	// list.
	Oldest uint64
	// List are the changes in order. They are not changed.
	List []Change
	// ResourceVersion is the newest one when this was asked.
	ResourceVersion uint64
	// Next is closed by the next change.
	Next <-chan struct{}
}

// served is a storage as a backend.
type served struct{ *Storage }

// ServedTypes implements Backend.
func (s served) ServedTypes() ([]Type, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typesLocked(), s.mu.served
}

// Collection implements Backend.
func (s served) Collection(gr schema.GroupResource) Collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	if c == nil {
		return nil
	}
	return &servedCollection{storage: s.Storage, collection: c, typ: c.typ, ended: c.ended}
}

// servedCollection is a collection of a storage, with its type as it was when somebody asked.
type servedCollection struct {
	storage    *Storage
	collection *collection
	typ        Type
	ended      <-chan struct{}
}

// Type implements Collection.
func (c *servedCollection) Type() Type { return c.typ }

// Ended implements Collection.
func (c *servedCollection) Ended() <-chan struct{} { return c.ended }

// ResourceVersion implements Collection.
func (c *servedCollection) ResourceVersion() uint64 {
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	return c.storage.mu.version
}

// Get implements Collection.
func (c *servedCollection) Get(key string) Object {
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	return asObject(c.collection.objects[key])
}

// Snapshot implements Collection.
func (c *servedCollection) Snapshot(version uint64) Snapshot {
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	if version == 0 {
		version = c.storage.mu.version
	}
	if s, known := c.collection.snapshotAt(version); known {
		return s
	}
	return nil
}

// Since implements Collection.
func (c *servedCollection) Since(version uint64) Changes {
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	changes := c.collection.since(version)
	changes.ResourceVersion = c.storage.mu.version
	if removed := c.collection.removed; removed > 0 {
		// a watch must not go on in the next type of that name from after it has begun
		changes.ResourceVersion = removed
	}
	return changes
}
