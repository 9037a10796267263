package indexers

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// Reference declares a reference from the objects of a resource to other objects.
type Reference struct {
	// Name is unique among the references of a resource.
	Name string
	// To is the target type; the zero value if fields of the objects name it.
	To TargetType
	// Index returns a key for each target of an object, which [Reference.Target] decodes. It is composite;
	// its parts are group, kind, name and namespace, or name and namespace if To is set. Its name,
	// "references/" and the name of the reference, cannot be declared in a config. Informers do not have it
	// by default.
	Index *Index

	targetPosition position
}

// TargetType is the type of a target: a group, and the plural name or the kind.
type TargetType struct{ Group, Resource, Kind string }

// ReferenceTarget is the target of a reference.
type ReferenceTarget struct {
	// Group is the API group, "" for the core group.
	Group string
	// Resource is the plural name and Kind the kind; one of them is empty.
	Resource, Kind string
	// Namespace is the namespace of the target. It is meaningless if the target's type is cluster-scoped.
	Namespace string
	Name      string
	// UID is the UID of an owner; empty in references without UIDs.
	UID string
}

// Target decodes a key of the index.
func (r *Reference) Target(key string) ReferenceTarget {
	t := ReferenceTarget{Group: r.To.Group, Resource: r.To.Resource, Kind: r.To.Kind}
	parts := r.Index.Parts(key)
	for n, name := range r.Index.Keys {
		if n >= len(parts) || parts[n] == Null {
			continue
		}
		switch name {
		case partGroup:
			t.Group = parts[n]
		case partKind:
			t.Kind = parts[n]
		case partName:
			t.Name = parts[n]
		case partNamespace:
			t.Namespace = parts[n]
		case partUID:
			t.UID = parts[n]
		}
	}
	return t
}

// Reference returns the reference with a name.
func (r *Resource) Reference(name string) (*Reference, bool) {
	i := slices.IndexFunc(r.References, func(x *Reference) bool { return x.Name == name })
	if i < 0 {
		return nil, false
	}
	return r.References[i], true
}

// part returns the part with a name, or nil.
func (r *Reference) part(name string) *indexPart {
	for i := range r.Index.parts {
		if r.Index.parts[i].name == name {
			return &r.Index.parts[i]
		}
	}
	return nil
}

// isFixed reports whether the config names the type.
func (t TargetType) isFixed() bool { return t != TargetType{} }

// referencePrefix is the prefix of the names of reference indexes. No index of a config can have it.
const referencePrefix = "references/"

// Names of the parts of a reference's index, in order. If the type is fixed, the index has only name and
// namespace, otherwise all parts except the UID.
const (
	partGroup     = "group"
	partKind      = "kind"
	partName      = "name"
	partNamespace = "namespace"
	partUID       = "uid" // only for owners
)

// groupOf transforms an apiVersion to its group.
var groupOf = transform{name: "group", apply: func(apiVersion string) (string, bool) {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return "", true
	}
	return strings.Clone(group), true
}}

// ownNamespace is the namespace of the object; empty for cluster-scoped objects.
func ownNamespace() valuePath {
	return valuePath{path: jsonpath.FromSegments("metadata", "namespace"), root: true}
}

// ownersName is the name of owner references, which is reserved in a config.
const ownersName = "owners"

// OwnerReferences returns the reference to owners, which all objects have without a config: by group, kind,
// name and UID. The namespace of a target is that of the object.
func OwnerReferences() *Reference {
	empty := missingRule{kind: missingValue}
	field := func(name string) []valuePath { return []valuePath{{path: jsonpath.FromSegments(name)}} }
	index := newReferenceIndex(ownersName,
		indexPart{name: partGroup, sources: field("apiVersion"), transforms: []transform{groupOf}},
		indexPart{name: partKind, sources: field("kind")},
		indexPart{name: partName, sources: field("name")},
		indexPart{name: partNamespace, sources: []valuePath{ownNamespace()}, missing: empty},
		indexPart{name: partUID, sources: field("uid"), missing: empty})
	index.each = jsonpath.MustCompile(".metadata.ownerReferences[*]")
	index.deriveFields()
	return &Reference{Name: ownersName, Index: index}
}

// newReferenceIndex returns the index of a reference with the maximum limits.
func newReferenceIndex(name string, parts ...indexPart) *Index {
	index := &Index{
		Name: referencePrefix + name, parts: parts,
		maxValues:     rangeOf(tagOf[limitsForm]("maxValues")).max,
		maxValueBytes: rangeOf(tagOf[limitsForm]("maxValueBytes")).max,
	}
	for _, p := range parts {
		index.Keys = append(index.Keys, p.name)
	}
	return index
}
