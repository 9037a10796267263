package indexers

import (
	"slices"

	"github.com/crdcache/crdcache/indexers/internal/config"
)

// Reference says what the objects of a resource refer to.
type Reference struct {
	// Name is unique among the references of a resource.
	Name string
	// To is the type that is referred to; the zero value where fields of the objects say which it is.
	To TargetType
	// Index gives a key for each object that an object refers to, which [Reference.Target] reads. It is
	// composite, and no informer has it unless somebody adds it: its name, "references/" and that of the
	// reference, is none that a config can give. Its parts are group, kind, name and namespace, or the last
	// two where To says the type.
	Index *Index
}

// TargetType is a type that is referred to: a group, and the plural name or the kind.
type TargetType struct{ Group, Resource, Kind string }

// ReferenceTarget is an object that is referred to.
type ReferenceTarget struct {
	// Group is the API group, "" for the core group.
	Group string
	// Resource is the plural name, or empty; Kind is the kind, or empty. One of them is set.
	Resource, Kind string
	// Namespace is where the object is if its type has namespaces, and means nothing otherwise; it is empty
	// for references to what has none.
	Namespace string
	Name      string
	// UID is that of an owner; empty in references that name no UID.
	UID string
}

// Target gives what a key of the index stands for.
func (r *Reference) Target(key string) ReferenceTarget {
	t := ReferenceTarget{Group: r.To.Group, Resource: r.To.Resource, Kind: r.To.Kind}
	parts := r.Index.Parts(key)
	for n, name := range r.Index.Keys {
		if n >= len(parts) || parts[n] == Null {
			continue
		}
		switch name {
		case config.PartGroup:
			t.Group = parts[n]
		case config.PartKind:
			t.Kind = parts[n]
		case config.PartName:
			t.Name = parts[n]
		case config.PartNamespace:
			t.Namespace = parts[n]
		case config.PartUID:
			t.UID = parts[n]
		}
	}
	return t
}

// OwnerReferences is the reference that all objects have without a config: to their owners, by group, kind,
// name and UID. The namespace of a target is that of the object.
func OwnerReferences() *Reference { return newReference(config.Owners()) }

func newReference(d *config.Reference) *Reference {
	return &Reference{Name: d.Name, To: TargetType(d.To), Index: newIndex(d.Index)}
}

// Reference returns the reference of that name.
func (r *Resource) Reference(name string) (*Reference, bool) {
	i := slices.IndexFunc(r.References, func(x *Reference) bool { return x.Name == name })
	if i < 0 {
		return nil, false
	}
	return r.References[i], true
}
