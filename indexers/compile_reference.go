package indexers

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
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
	parts, ok := p.compileTarget(&form.To, reference)
	if !ok {
		return nil, false
	}
	reference.Index = newReferenceIndex(reference.Name, parts...)
	reference.Index.each, reference.Index.eachOrigin = each, eachAt
	reference.Index.when, reference.Index.whenCEL, reference.Index.whenOrigin = p.compileCondition(form.When)
	d.reportImpossible(reference.Index)
	return reference, reference.Index.complete() && (each != nil || !p.relativeToEach)
}

// compileTarget compiles the parts of a reference, without a fixed type.
func (p pathCompiler) compileTarget(form *targetForm, reference *Reference) ([]indexPart, bool) {
	group, kind, ok := p.compileTargetType(form, reference)
	if !ok {
		return nil, false
	}
	name := indexPart{name: partName}
	if form.Name.node != nil {
		name.sources = p.compileSources(nil, form.Name.node, `"name"`)
		if !name.singular() && !p.relativeToEach {
			p.reportManyTargets(form.Name.node, "name")
			return nil, false
		}
	}
	parts := []indexPart{name, p.compileTargetNamespace(&form.Namespace)}
	if reference.To.isFixed() {
		return parts, true
	}
	return append([]indexPart{group, kind}, parts...), true
}

// reportManyTargets reports a path with many results.
func (d *decoder) reportManyTargets(n *yaml.Node, field string) {
	d.failAt(codeContradict, n, fmt.Sprintf("the path to the %s can have many results", field),
		"set each: to the path of the elements, and write paths within an element")
}

// compileTargetType compiles the target type: into r if it is fixed, and into parts otherwise.
func (p pathCompiler) compileTargetType(form *targetForm, reference *Reference) (group, kind indexPart,
	ok bool) {
	switch form.chosenFields[0] {
	case "":
		return group, kind, false
	case "group":
		group, ok = p.compileFixedOrField(&form.Group.fieldForm, partGroup, "group")
	default:
		group, ok = p.compileFixedOrField(&form.APIVersion, partGroup, "apiVersion")
		group.transforms = []transform{groupOf}
		if group.constant {
			p.failAt(codeContradict, form.APIVersion.node, `"apiVersion" is for a field of the object`,
				"write group: with the API group alone")
			ok = false
		}
	}
	switch form.chosenFields[1] {
	case "":
		return group, kind, false
	case "resource":
		reference.To = TargetType{Group: group.missing.value, Resource: form.Resource.value}
		if ok && !group.constant {
			p.failAt(codeContradict, form.Resource.node, `"resource" needs a fixed group`,
				"write kind: for a type that the objects name")
			ok = false
		}
		return group, kind, ok && reference.To.Resource != ""
	}
	kind, valid := p.compileFixedOrField(&form.Kind.fieldForm, partKind, "kind")
	if ok && valid && group.constant && kind.constant {
		reference.To = TargetType{Group: group.missing.value, Kind: kind.missing.value}
	}
	return group, kind, ok && valid
}

// compileFixedOrField compiles a fixed text, or the path to it.
func (p pathCompiler) compileFixedOrField(form *fieldForm, part, field string) (out indexPart, ok bool) {
	out.name = part
	n, noun := form.node, fmt.Sprintf("%q", field)
	if n.Kind != yaml.MappingNode {
		s, ok := p.decodeOptionalText(n, noun, "write a text, or {path: ...}", field == "group")
		out.constant, out.missing = true, missingRule{kind: missingValue, value: s, node: n}
		return out, ok
	}
	if !p.decodeForm(form, n, noun) || form.Path.node == nil {
		return out, false
	}
	out.sources = p.compileSources(nil, form.Path.node, `"path"`)
	if !out.singular() {
		p.reportManyTargets(form.Path.node, field)
		return out, false
	}
	if form.Missing.isSet {
		out.missing = missingRule{kind: missingValue, value: form.Missing.value, node: form.Missing.node}
	}
	return out, len(out.sources) > 0
}

// compileTargetNamespace compiles the namespace of targets. Default: the object's own.
func (p pathCompiler) compileTargetNamespace(f *targetNamespaceForm) indexPart {
	ownPath := ownNamespace()
	ownPath.root = p.relativeToEach
	part, n := indexPart{name: partNamespace, missing: missingRule{kind: missingValue}}, f.node
	switch {
	case n == nil, n.Kind == yaml.ScalarNode && n.Value == "own":
		part.sources = []valuePath{ownPath}
	case n.Kind == yaml.ScalarNode && n.Value == "none":
		part.constant = true
	case n.Kind == yaml.MappingNode:
		if !p.reportUnquoted(n, `"namespace"`) {
			p.decodeForm(f, n, `"namespace"`)
			part.constant, part.missing.node, part.missing.value = true, n, f.Value.value
		}
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value != "" &&
		!strings.ContainsAny(n.Value[:1], ".$@{["):
		p.failAt(codeUnknownValue, n, fmt.Sprintf("%q is neither own nor none nor a path", n.Value),
			fmt.Sprintf("write {value: %s} for this namespace, or .%[1]s for a field",
				n.Value))
	default:
		part.sources = p.compileSources(nil, n, `"namespace"`)
		if !part.singular() {
			p.failAt(codeContradict, n, "the path to the namespace can have many results",
				"write own, none, or a path to one namespace")
			part.sources = nil
			return part
		}
		part.sources = append(part.sources, ownPath)
	}
	return part
}
