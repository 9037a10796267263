package indexers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
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
	return naming.Find(r.References, func(x *Reference) bool { return x.Name == name })
}

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
		indexPart{name: partKind, sources: field("kind")}, indexPart{name: partName, sources: field("name")},
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
		Keys: naming.Map(parts, func(p indexPart) string { return p.name }),
	}
	_, index.maxValues = rangeOf(tagOf[limitsForm]("maxValues"))
	_, index.maxValueBytes = rangeOf(tagOf[limitsForm]("maxValueBytes"))
	return index
}

// compileReference compiles one reference; names holds the reference names of the resource so far.
func (d *decoder) compileReference(form *referenceForm, names map[string]string) (*Reference, bool) {
	reference := &Reference{Name: form.Name.value}
	d.checkUnique(names, "reference", form.Name)
	if reference.Name == ownersName {
		d.failAt(codeDuplicateName, form.Name.node, fmt.Sprintf("%q is the name of the built-in owner references",
			reference.Name), "choose another name, or use that reference")
	}
	p := pathCompiler{decoder: d, relativeToEach: form.Each.node != nil}
	each, eachAt := p.compileEach(form.Each)
	if form.To.node == nil {
		return nil, false
	}
	reference.targetPosition = d.file.positionOf(form.To.node)
	reference.Index = newReferenceIndex(reference.Name, p.compileTarget(&form.To, reference)...)
	reference.Index.each, reference.Index.eachOrigin = each, eachAt
	reference.Index.when, reference.Index.whenCEL, reference.Index.whenOrigin =
		p.compileCondition(&form.conditionForm)
	d.reportImpossible(reference.Index)
	return reference, reference.Index.complete() && (each != nil || !p.relativeToEach)
}

// compileTarget compiles the parts of a reference, without a fixed type. It returns nil after reporting an
// error.
func (p pathCompiler) compileTarget(form *targetForm, reference *Reference) []indexPart {
	group := p.compileTargetPart(partGroup, form.Group, form.GroupPath)
	if form.APIVersionPath.node != nil {
		group = p.compileTargetPart(partGroup, form.Group, form.APIVersionPath)
		group.transforms = []transform{groupOf}
	}
	kind := p.compileTargetPart(partKind, cmp.Or(form.Kind, form.Resource), form.KindPath)
	name := p.compileTargetPart(partName, textField{}, form.NamePath)
	namespace := p.compileTargetPart(partNamespace, form.Namespace, form.NamespacePath)
	if form.Namespace.node == nil {
		namespace.missing.kind = missingValue // "" for cluster-scoped targets
		if form.Scope.node == nil && (namespace.constant || namespace.sources != nil) {
			own := ownNamespace()
			own.root = p.relativeToEach
			namespace.constant, namespace.sources = false, append(namespace.sources, own)
		}
	}
	parts := []indexPart{group, kind, name, namespace}
	if slices.ContainsFunc(parts, indexPart.lacksValue) {
		return nil
	}
	if group.constant && kind.constant {
		reference.To = TargetType{form.Group.value, form.Resource.value, form.Kind.value}
		return parts[2:]
	}
	return parts
}

// lacksValue reports whether a part has neither a source nor a value, because of an error.
func (p indexPart) lacksValue() bool {
	return len(p.sources) == 0 && (!p.constant || p.missing.kind != missingValue)
}

func (p pathCompiler) compileTargetPart(name string, fixed textField, path pathForm) indexPart {
	part := indexPart{name: name, constant: path.node == nil, single: !p.relativeToEach || name != partName}
	if fixed.isSet {
		part.missing = missingRule{kind: missingValue, value: fixed.value, node: fixed.node}
	}
	if !part.constant {
		part.sources = p.compileSources(nil, path.node, "the path to the "+name)
	}
	if !part.singular() && part.single {
		p.failAt(codeContradict, path.node, fmt.Sprintf("the path to the %s can have many results", name),
			"set each: to the path of the elements, and write paths within an element")
		part.sources = nil
	}
	return part
}
