package config

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// compileReference compiles one reference; names holds the reference names of the resource so far.
func (d *decoder) compileReference(f *referenceForm, names map[string]string) (*Reference, bool) {
	r := &Reference{Name: f.Name.value}
	d.checkUnique(names, "reference", f.Name)
	if r.Name == OwnersName {
		d.failAt(CodeDuplicateName, f.Name.node, fmt.Sprintf("%q is the name of the built-in owner references",
			r.Name),
			"choose another name, or use that reference")
	}
	p := pathCompiler{decoder: d, relativeToEach: f.Each.node != nil}
	each, eachAt := p.compileEach(f.Each)
	if f.To.node == nil {
		return nil, false
	}
	r.TargetPosition = d.file.PositionOf(f.To.node)
	parts, ok := p.compileTarget(&f.To, r)
	if !ok {
		return nil, false
	}
	r.Index = newReferenceIndex(r.Name, parts...)
	r.Index.Each, r.Index.EachOrigin = each, eachAt
	r.Index.When, r.Index.WhenOrigin = p.compileFilter(f.When)
	d.reportImpossible(r.Index)
	return r, r.Index.Complete() && (each != nil || !p.relativeToEach)
}

// compileTarget compiles the parts of a reference, without a fixed type.
func (p pathCompiler) compileTarget(f *targetForm, r *Reference) ([]Part, bool) {
	group, kind, ok := p.compileTargetType(f, r)
	if !ok {
		return nil, false
	}
	name := Part{Name: PartName}
	if f.Name.node != nil {
		name.Sources = p.compileSources(nil, f.Name.node, `"name"`)
		if !name.Singular() && !p.relativeToEach {
			p.reportManyTargets(f.Name.node, "name")
			return nil, false
		}
	}
	parts := []Part{name, p.compileTargetNamespace(&f.Namespace)}
	if r.To.IsFixed() {
		return parts, true
	}
	return append([]Part{group, kind}, parts...), true
}

// reportManyTargets reports a path with many results.
func (d *decoder) reportManyTargets(n *yaml.Node, field string) {
	d.failAt(CodeContradict, n, fmt.Sprintf("the path to the %s can have many results", field),
		"set each: to the path of the elements, and write paths within an element")
}

// compileTargetType compiles the target type: into r if it is fixed, and into parts otherwise.
func (p pathCompiler) compileTargetType(f *targetForm, r *Reference) (group, kind Part, ok bool) {
	switch f.chosenFields[0] {
	case "":
		return group, kind, false
	case "group":
		group, ok = p.compileFixedOrField(&f.Group.fieldForm, PartGroup, "group")
	default:
		group, ok = p.compileFixedOrField(&f.APIVersion, PartGroup, "apiVersion")
		group.Transforms = []Transform{groupOf}
		if group.Constant {
			p.failAt(CodeContradict, f.APIVersion.node, `"apiVersion" is for a field of the object`,
				"write group: with the API group alone")
			ok = false
		}
	}
	switch f.chosenFields[1] {
	case "":
		return group, kind, false
	case "resource":
		r.To = TargetType{Group: group.Missing.Value, Resource: f.Resource.value}
		if ok && !group.Constant {
			p.failAt(CodeContradict, f.Resource.node, `"resource" needs a fixed group`,
				"write kind: for a type that the objects name")
			ok = false
		}
		return group, kind, ok && r.To.Resource != ""
	}
	kind, valid := p.compileFixedOrField(&f.Kind.fieldForm, PartKind, "kind")
	if ok && valid && group.Constant && kind.Constant {
		r.To = TargetType{Group: group.Missing.Value, Kind: kind.Missing.Value}
	}
	return group, kind, ok && valid
}

// compileFixedOrField compiles a fixed text, or the path to it.
func (p pathCompiler) compileFixedOrField(f *fieldForm, part, field string) (out Part, ok bool) {
	out.Name = part
	n, noun := f.node, fmt.Sprintf("%q", field)
	if n.Kind != yaml.MappingNode {
		s, ok := p.decodeOptionalText(n, noun, "write a text, or {path: ...}", field == "group")
		out.Constant, out.Missing = true, Missing{Kind: MissingValue, Value: s, Node: n}
		return out, ok
	}
	if !p.decodeForm(f, n, noun) || f.Path.node == nil {
		return out, false
	}
	out.Sources = p.compileSources(nil, f.Path.node, `"path"`)
	if !out.Singular() {
		p.reportManyTargets(f.Path.node, field)
		return out, false
	}
	if f.Missing.isSet {
		out.Missing = Missing{Kind: MissingValue, Value: f.Missing.value, Node: f.Missing.node}
	}
	return out, len(out.Sources) > 0
}

// compileTargetNamespace compiles the namespace of targets. Default: the object's own.
func (p pathCompiler) compileTargetNamespace(f *targetNamespaceForm) Part {
	own := ownNamespace()
	own.Root = p.relativeToEach
	part, n := Part{Name: PartNamespace, Missing: Missing{Kind: MissingValue}}, f.node
	switch {
	case n == nil, n.Kind == yaml.ScalarNode && n.Value == "own":
		part.Sources = []Source{own}
	case n.Kind == yaml.ScalarNode && n.Value == "none":
		part.Constant = true
	case n.Kind == yaml.MappingNode:
		if !p.reportUnquoted(n, `"namespace"`) {
			p.decodeForm(f, n, `"namespace"`)
			part.Constant, part.Missing.Node, part.Missing.Value = true, n, f.Value.value
		}
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value != "" &&
		!strings.ContainsAny(n.Value[:1], ".$@{["):
		p.failAt(CodeUnknownValue, n, fmt.Sprintf("%q is neither own nor none nor a path", n.Value),
			fmt.Sprintf("write {value: %s} for this namespace, or .%[1]s for a field",
				n.Value))
	default:
		part.Sources = p.compileSources(nil, n, `"namespace"`)
		if !part.Singular() {
			p.failAt(CodeContradict, n, "the path to the namespace can have many results",
				"write own, none, or a path to one namespace")
			part.Sources = nil
			return part
		}
		part.Sources = append(part.Sources, own)
	}
	return part
}
