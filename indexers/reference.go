package indexers

import (
	"slices"

	"github.com/crdcache/crdcache/indexers/internal/config"
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

// OwnerReferences returns the reference to owners, which all objects have without a config: by group, kind,
// name and UID. The namespace of a target is that of the object.
func OwnerReferences() *Reference { return newReference(config.OwnerReferences()) }

func newReference(d *config.Reference) *Reference {
	return &Reference{Name: d.Name, To: TargetType(d.To), Index: newIndex(d.Index)}
}

// Reference returns the reference of a name.
func (r *Resource) Reference(name string) (*Reference, bool) {
	i := slices.IndexFunc(r.References, func(x *Reference) bool { return x.Name == name })
	if i < 0 {
		return nil, false
	}
	return r.References[i], true
}
