package readapi

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Backend provides the types and objects that a handler serves. Its methods, and the methods of their
// results, must be safe for concurrent use and must not block.
type Backend interface {
	// ServedTypes returns all types sorted by group and plural, and a number that changes with them. The
	// handler can modify the slice, but not the memory that its elements refer to.
	ServedTypes() (types []Type, generation uint64)
	// Collection returns the objects of a type, or nil if the type is not served.
	Collection(schema.GroupResource) Collection
}

// Collection holds the objects of one type.
type Collection interface {
	// Type returns the type. It is constant: if the type changes, Backend returns another Collection, or
	// Ended is closed.
	Type() Type
	// Ended is closed when the type changes or is removed. Watches then send the remaining changes and end.
	Ended() <-chan struct{}
	// ResourceVersion returns the latest resource version.
	ResourceVersion() uint64
	// Get returns an object, or nil.
	Get(key string) Object
	// Snapshot returns the objects at a resource version, or nil if the history does not reach back that far.
	// The version is at most ResourceVersion; 0 means the latest.
	Snapshot(version uint64) Snapshot
	// Since returns the changes after a resource version.
	Since(version uint64) Changes
}

// Versioned is a Collection that holds objects in several versions and does not convert them.
type Versioned interface {
	Collection
	// InVersion returns the objects for requests that name a version.
	InVersion(version string) Collection
}

// Object is an immutable state of an object. Different states must not be equal (==).
type Object interface {
	// Key returns "namespace/name", or the name alone. Lists are sorted by key.
	Key() string
	// Version returns the version in which the object is stored, such as "v1".
	Version() string
	Labels() labels.Labels
	// JSON returns the object with any apiVersion or none. The caller does not modify it.
	JSON() ([]byte, error)
	// AppendJSON appends the object with an apiVersion, which is a quoted JSON string.
	AppendJSON(dst []byte, apiVersion string) ([]byte, error)
}

// ListItem is an Object with a different form in lists. A kube-apiserver omits kind and apiVersion of
// built-in types in lists.
type ListItem interface {
	Object
	AppendItem(dst []byte) ([]byte, error)
}

// Fields is a Collection with additional fields for field selectors. An object can have several values in
// such a field: "=" selects an object with an equal value, "!=" an object without one.
type Fields interface {
	// Field returns a function that reports whether an object has a value in a field, or nil if the field is
	// unknown. The error describes an invalid value, or reports that the objects lack the field.
	Field(name, value string) (func(Object) bool, error)
}

// Filter is a Collection that restricts its lists and watches to selected objects. An error ends them. It
// does not apply to Get.
type Filter interface {
	Collection
	Selects(Object) (bool, error)
}

// FieldIndexed is a Snapshot of a Collection with Fields that can find objects by value without a scan.
type FieldIndexed interface {
	// RangeField is Range restricted to the objects with a value in a field. It returns false if it cannot
	// find them.
	RangeField(field, value, from, to string) (iter.Seq[Object], bool)
}

// Snapshot holds the objects of a type at one resource version.
type Snapshot interface {
	ResourceVersion() uint64
	// Range yields the objects with from <= key < to, sorted by key. An empty to means no upper bound.
	Range(from, to string) iter.Seq[Object]
	// Count returns the number of objects that Range yields.
	Count(from, to string) int
}

// Change is a change of an object. Before is nil if the object was created, After if it was deleted.
type Change struct {
	ResourceVersion uint64
	Before, After   Object
}

type Changes struct {
	// Oldest is the resource version from which on changes are known. A client with an older version must
	// list again.
	Oldest uint64
	// List holds the changes in order. It is immutable.
	List []Change
	// ResourceVersion is the latest resource version at the time of the call.
	ResourceVersion uint64
	// Next is closed by the next change.
	Next <-chan struct{}
}

// Refuser is a Collection that can refuse requests, for example for a type that was unreadable when a
// snapshot of the cluster was saved.
type Refuser interface {
	Collection
	// Refused returns the error for all requests for a version of the type, or nil if it is served.
	Refused(version string) error
}

func (r *resource) refusedError() error {
	if refuser, ok := r.collection.(Refuser); ok {
		return refuser.Refused(r.gv.Version)
	}
	return nil
}
