package indexers

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// compileReference compiles one reference; names holds the reference names of the resource so far.
func (d *decoder) compileReference(f *referenceForm, names map[string]string) (*Reference, bool) {
	r := &Reference{Name: f.Name.value}
	d.checkUnique(names, "reference", f.Name)
	if r.Name == ownersName {
		d.failAt(codeDuplicateName, f.Name.node, fmt.Sprintf("%q is the name of the built-in owner references",
			r.Name),
			"choose another name, or use that reference")
	}
	p := pathCompiler{decoder: d, relativeToEach: f.Each.node != nil}
	each, eachAt := p.compileEach(f.Each)
	if f.To.node == nil {
		return nil, false
	}
	r.targetPosition = d.file.positionOf(f.To.node)
	parts, ok := p.compileTarget(&f.To, r)
	if !ok {
		return nil, false
	}
	r.Index = newReferenceIndex(r.Name, parts...)
	r.Index.each, r.Index.eachOrigin = each, eachAt
	r.Index.when, r.Index.whenCEL, r.Index.whenOrigin = p.compileCondition(f.When)
	d.reportImpossible(r.Index)
	return r, r.Index.complete() && (each != nil || !p.relativeToEach)
}

// compileTarget compiles the parts of a reference, without a fixed type.
func (p pathCompiler) compileTarget(f *targetForm, r *Reference) ([]indexPart, bool) {
	group, kind, ok := p.compileTargetType(f, r)
	if !ok {
		return nil, false
	}
	name := indexPart{name: partName}
	if f.Name.node != nil {
		name.sources = p.compileSources(nil, f.Name.node, `"name"`)
		if !name.singular() && !p.relativeToEach {
			p.reportManyTargets(f.Name.node, "name")
			return nil, false
		}
	}
	parts := []indexPart{name, p.compileTargetNamespace(&f.Namespace)}
	if r.To.isFixed() {
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
func (p pathCompiler) compileTargetType(f *targetForm, r *Reference) (group, kind indexPart, ok bool) {
	switch f.chosenFields[0] {
	case "":
		return group, kind, false
	case "group":
		group, ok = p.compileFixedOrField(&f.Group.fieldForm, partGroup, "group")
	default:
		group, ok = p.compileFixedOrField(&f.APIVersion, partGroup, "apiVersion")
		group.transforms = []transform{groupOf}
		if group.constant {
			p.failAt(codeContradict, f.APIVersion.node, `"apiVersion" is for a field of the object`,
				"write group: with the API group alone")
			ok = false
		}
	}
	switch f.chosenFields[1] {
	case "":
		return group, kind, false
	case "resource":
		r.To = TargetType{Group: group.missing.value, Resource: f.Resource.value}
		if ok && !group.constant {
			p.failAt(codeContradict, f.Resource.node, `"resource" needs a fixed group`,
				"write kind: for a type that the objects name")
			ok = false
		}
		return group, kind, ok && r.To.Resource != ""
	}
	kind, valid := p.compileFixedOrField(&f.Kind.fieldForm, partKind, "kind")
	if ok && valid && group.constant && kind.constant {
		r.To = TargetType{Group: group.missing.value, Kind: kind.missing.value}
	}
	return group, kind, ok && valid
}

// compileFixedOrField compiles a fixed text, or the path to it.
func (p pathCompiler) compileFixedOrField(f *fieldForm, part, field string) (out indexPart, ok bool) {
	out.name = part
	n, noun := f.node, fmt.Sprintf("%q", field)
	if n.Kind != yaml.MappingNode {
		s, ok := p.decodeOptionalText(n, noun, "write a text, or {path: ...}", field == "group")
		out.constant, out.missing = true, missingRule{kind: missingValue, value: s, node: n}
		return out, ok
	}
	if !p.decodeForm(f, n, noun) || f.Path.node == nil {
		return out, false
	}
	out.sources = p.compileSources(nil, f.Path.node, `"path"`)
	if !out.singular() {
		p.reportManyTargets(f.Path.node, field)
		return out, false
	}
	if f.Missing.isSet {
		out.missing = missingRule{kind: missingValue, value: f.Missing.value, node: f.Missing.node}
	}
	return out, len(out.sources) > 0
}

// compileTargetNamespace compiles the namespace of targets. Default: the object's own.
func (p pathCompiler) compileTargetNamespace(f *targetNamespaceForm) indexPart {
	own := ownNamespace()
	own.root = p.relativeToEach
	part, n := indexPart{name: partNamespace, missing: missingRule{kind: missingValue}}, f.node
	switch {
	case n == nil, n.Kind == yaml.ScalarNode && n.Value == "own":
		part.sources = []valuePath{own}
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
		part.sources = append(part.sources, own)
	}
	return part
}
