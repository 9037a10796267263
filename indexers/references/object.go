package references

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/naming"
)

// Type is a type of objects in a graph.
type Type struct {
	// Group is "" for the core group.
	Group string
	// Resource is the plural name, Kind the kind.
	Resource, Kind string
	// Namespaced is false for cluster-scoped types.
	Namespaced bool
}

// Object identifies an object. Resource, Kind or both are set; results of a graph have both if the type has a
// source.
type Object struct {
	// Group is "" for the core group.
	Group, Resource, Kind string
	// Namespace is "" for cluster-scoped objects.
	Namespace string
	Name      string
	// UID is set if a reference is to one object rather than to any object of the name.
	UID string
}

// Key returns "namespace/name", or the name of a cluster-scoped object, for display: a reference can contain
// any text. Use StoreKey to look the object up.
func (o Object) Key() string { return cache.NewObjectName(o.Namespace, o.Name).String() }

// StoreKey returns the key of the object in a cache, or false if no object can have the name.
func (o Object) StoreKey() (key string, ok bool) {
	return naming.Key(cache.NewObjectName(o.Namespace, o.Name))
}

// String formats the object like "Issuer.cert-manager.io prod/ca".
func (o Object) String() string {
	typ := schema.GroupKind{Group: o.Group, Kind: cmp.Or(o.Kind, o.Resource)}
	return typ.String() + " " + o.Key()
}

// compare orders objects by type, namespace and name.
func (o Object) compare(other Object) int {
	return cmp.Or(
		strings.Compare(o.Group, other.Group), strings.Compare(o.Resource, other.Resource),
		strings.Compare(o.Kind, other.Kind), strings.Compare(o.Namespace, other.Namespace),
		strings.Compare(o.Name, other.Name), strings.Compare(o.UID, other.UID),
	)
}

// State is the state of a reference.
type State string

const (
	// Resolved: the target exists.
	Resolved State = "Resolved"
	// Dangling: the target does not exist, or has another UID.
	Dangling State = "Dangling"
	// Unknown: no synced source has all objects of the target's type, or the reference has no namespace and
	// the type is namespaced.
	Unknown State = "Unknown"
)

// Reference is one reference of an object.
type Reference struct {
	// From is the object that has the reference.
	From Object
	// Name is the name of the declaration, or [Owners].
	Name string
	// To is the target.
	To Object
	// State is the state at the time of the lookup.
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

// Owners is the name of owner references, which all objects have. They refer to a UID.
const Owners = "owners"

// extractor reads the references of objects.
type extractor struct {
	names      []string // of references, in the order of functions
	references []*indexers.Reference
	functions  *indexers.Functions
}

func newExtractor(declared []*indexers.Reference) extractor {
	x := extractor{references: append([]*indexers.Reference{indexers.OwnerReferences()}, declared...)}
	x.names = naming.Texts(x.references, func(r *indexers.Reference) string { return r.Name })
	x.functions = indexers.CompileIndexes(naming.Map(x.references,
		func(r *indexers.Reference) *indexers.Index { return r.Index })...)
	return x
}

type extractedObject struct {
	objectKey
	objectState
}

// readMetadata reads the metadata of an object. It copies texts, so that they do not pin the stored object.
func readMetadata(obj any) (extractedObject, bool) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return extractedObject{}, false
	}
	return extractedObject{
		objectKey{strings.Clone(m.GetNamespace()), strings.Clone(m.GetName())},
		objectState{uid: strings.Clone(string(m.GetUID()))},
	}, true
}

func (e extractor) read(obj any) (extractedObject, bool) {
	object, ok := readMetadata(obj)
	if !ok {
		return object, false
	}
	for i, keys := range e.functions.KeysOfStored(obj) {
		for _, key := range keys {
			to := Object(e.references[i].Target(key))
			if to.Name != "" {
				object.outgoing = append(object.outgoing, edgeID{e.names[i], to})
			}
		}
	}
	return object, true
}
