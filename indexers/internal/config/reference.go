package config

import (
	"strings"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// Reference is a declared reference; see indexers.Reference.
type Reference struct {
	Name string
	To   TargetType
	// Index has one part for each name below.
	Index *Index
	// TargetPosition is the position of the target.
	TargetPosition Position
}

// Part returns the part of a name, or nil.
func (r *Reference) Part(name string) *Part {
	for i := range r.Index.Parts {
		if r.Index.Parts[i].Name == name {
			return &r.Index.Parts[i]
		}
	}
	return nil
}

type TargetType struct{ Group, Resource, Kind string }

// IsFixed reports whether the config names the type.
func (t TargetType) IsFixed() bool { return t != TargetType{} }

// ReferencePrefix is the prefix of the names of reference indexes. No index of a config can have it.
const ReferencePrefix = "references/"

// Names of the parts of a reference's index, in order. If the type is fixed, the index has only name and
// namespace, otherwise all parts except the UID.
const (
	PartGroup     = "group"
	PartKind      = "kind"
	PartName      = "name"
	PartNamespace = "namespace"
	PartUID       = "uid" // only for owners
)

// groupOf transforms an apiVersion to its group.
var groupOf = Transform{Name: "group", Apply: func(apiVersion string) (string, bool) {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return "", true
	}
	return strings.Clone(group), true
}}

// ownNamespace is the namespace of the object; empty for cluster-scoped objects.
func ownNamespace() Source {
	return Source{Path: jsonpath.FromSegments("metadata", "namespace"), Root: true}
}

// OwnersName is the name of owner references, which is reserved in a config.
const OwnersName = "owners"

// OwnerReferences returns the owner references that every object has. Their index has the UID as another
// part.
func OwnerReferences() *Reference {
	part := func(name, field string) Part {
		return Part{Name: name, Sources: []Source{{Path: jsonpath.FromSegments(field)}}}
	}
	group := part(PartGroup, "apiVersion")
	group.Transforms = []Transform{groupOf}
	namespace := Part{Name: PartNamespace, Sources: []Source{ownNamespace()},
		Missing: Missing{Kind: MissingValue}}
	uid := part(PartUID, "uid")
	uid.Missing = Missing{Kind: MissingValue}
	index := newReferenceIndex(OwnersName, group, part(PartKind, "kind"), part(PartName, "name"),
		namespace, uid)
	index.Each = jsonpath.MustCompile(".metadata.ownerReferences[*]")
	return &Reference{Name: OwnersName, Index: index}
}

// newReferenceIndex returns the index of a reference with the maximum limits.
func newReferenceIndex(name string, parts ...Part) *Index {
	index := &Index{
		Name: ReferencePrefix + name, Parts: parts,
		MaxValues:     boundsOf(tagOf[limitsForm]("maxValues")).max,
		MaxValueBytes: boundsOf(tagOf[limitsForm]("maxValueBytes")).max,
	}
	for _, p := range parts {
		index.Keys = append(index.Keys, p.Name)
	}
	return index
}
