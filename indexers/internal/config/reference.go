package config

import (
	"strings"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// Reference is a reference as it is declared; see indexers.Reference.
type Reference struct {
	Name string
	To   TargetType
	// Index has the parts that ReferenceParts names.
	Index *Index
	// At is where the target is written.
	At Place
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

// TargetType is indexers.TargetType.
type TargetType struct{ Group, Resource, Kind string }

// IsFixed reports whether the type is known without looking at an object.
func (t TargetType) IsFixed() bool { return t != TargetType{} }

// ReferencePrefix is what the names of the indexes of references begin with. No index of a config has such a
// name.
const ReferencePrefix = "references/"

// The parts of the index of a reference, in order: all of them where fields say the type, else the last two.
const (
	PartGroup     = "group"
	PartKind      = "kind"
	PartName      = "name"
	PartNamespace = "namespace"
	PartUID       = "uid" // of owners alone
)

// groupOf is the transform of an apiVersion to its group, which is empty for the core group.
var groupOf = Transform{Name: "group", Apply: func(apiVersion string) (string, bool) {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return "", true
	}
	return strings.Clone(group), true
}}

// ownNamespace is the namespace of the object itself; empty for objects without.
func ownNamespace() Source {
	return Source{Path: jsonpath.FromSegments("metadata", "namespace"), Root: true}
}

// OwnersName is the name of the reference to owners. No reference of a config has it.
const OwnersName = "owners"

// Owners is the reference that every object has: to its owners. It has the UID as another part.
func Owners() *Reference {
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

// newReferenceIndex makes the index of a reference. No target is left out for being one of many.
func newReferenceIndex(name string, parts ...Part) *Index {
	index := &Index{
		Name: ReferencePrefix + name, Parts: parts,
		MaxValues:     boundsOf(tagOf[limitsForm]("maxValues")).most,
		MaxValueBytes: boundsOf(tagOf[limitsForm]("maxValueBytes")).most,
	}
	for _, p := range parts {
		index.Keys = append(index.Keys, p.Name)
	}
	return index
}
