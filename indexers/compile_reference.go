package indexers

import (
	"cmp"
	"fmt"
	"slices"
)

// compileReference compiles one reference; names holds the reference names of the resource so far.
func (d *decoder) compileReference(form *referenceForm, names map[string]string) (*Reference, bool) {
	reference := &Reference{Name: form.Name.value}
	d.checkUnique(names, "reference", form.Name)
	if reference.Name == ownersName {
		d.failAt(codeDuplicateName, form.Name.node, fmt.Sprintf("%q is the name of the built-in owner references",
			reference.Name),
			"choose another name, or use that reference")
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

// compileTarget compiles the parts of a reference, without a fixed type. It returns none after reporting an
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

// compileTargetPart compiles a fixed text, or the path to a text with a default.
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
