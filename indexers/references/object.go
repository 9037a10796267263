package references

import (
	"cmp"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/pattern"
)

// Type is a type of objects in a graph.
type Type struct {
	// Group is "" for the core group.
	Group string
	// Resource is the plural name, Kind that of a single object.
	Resource, Kind string
	// Namespaced is false for types whose objects are outside of any namespace.
	Namespaced bool
}

// Object names an object, by the Resource or the Kind of its type or by both. What a graph gives has both
// where it follows the type.
type Object struct {
	// Group is "" for the core group.
	Group, Resource, Kind string
	// Namespace is "" for what is outside of any.
	Namespace string
	Name      string
	// UID is set where a reference is to one object rather than to whatever has the name.
	UID string
}

// Key returns "namespace/name", or the name of an object without a namespace. It is a text for people: a
// reference may name anything. StoreKey is the key for looking the object up.
func (o Object) Key() string { return cache.NewObjectName(o.Namespace, o.Name).String() }

// StoreKey returns the key of the object in a cache, or false if no object can have the name.
func (o Object) StoreKey() (key string, ok bool) {
	return pattern.Key(cache.NewObjectName(o.Namespace, o.Name))
}

// String names the object as in "Issuer.cert-manager.io prod/ca".
func (o Object) String() string {
	text := cmp.Or(o.Kind, o.Resource)
	if o.Group != "" {
		text += "." + o.Group
	}
	return text + " " + o.Key()
}

// compare orders objects by their type, namespace and name.
func (o Object) compare(other Object) int {
	return cmp.Or(
		strings.Compare(o.Group, other.Group), strings.Compare(o.Resource,
			other.Resource), strings.Compare(o.Kind, other.Kind),
		strings.Compare(o.Namespace, other.Namespace), strings.Compare(o.Name,
			other.Name), strings.Compare(o.UID, other.UID),
	)
}

// State says whether a reference leads to something.
type State string

const (
	// Resolved references lead to an object.
	Resolved State = "Resolved"
	// Dangling references lead to nothing: there is no object of the name, or it has another UID.
	Dangling State = "Dangling"
	// Unknown is the state of references to a type that no member follows completely, or that has not synced
	// yet, and of references without a namespace to a type that has namespaces.
	Unknown State = "Unknown"
)

// Reference is one reference of an object.
type Reference struct {
	// From is the object that refers.
	From Object
	// Name is that of the declaration, or [Owners].
	Name string
	// To is what it refers to.
	To Object
	// State is that at the moment of the look-up.
	State State
}

// String describes the reference in one line.
func (r Reference) String() string {
	text := r.From.String() + " " + r.Name + " → " + r.To.String()
	if r.State != Resolved {
		text += " (" + strings.ToLower(string(r.State)) + ")"
	}
	return text
}

func (r Reference) compare(other Reference) int {
	return cmp.Or(r.From.compare(other.From), strings.Compare(r.Name, other.Name), r.To.compare(other.To))
}
