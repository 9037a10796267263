package config

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// reference reads one reference; names holds those of the resource so far.
func (d *decoding) reference(n *yaml.Node, names map[string]string) (*Reference, bool) {
	f, ok := form[referenceForm](d, n, "a reference")
	if !ok {
		return nil, false
	}
	r := &Reference{}
	if v := f.get("name"); v != nil {
		if r.Name, ok = patterned[referenceForm](d, "name", v, "the name of a reference"); ok {
			d.claim(names, "reference", r.Name, v)
			if r.Name == OwnersName {
				d.failAt(CodeTaken, v, fmt.Sprintf("%q is the reference of all objects to their owners", r.Name), "choose another name, or use that reference")
			}
		}
	}
	dialect := d.defaults.limits.dialect
	var each *jsonpath.Path
	var eachAt Origin
	if v := f.get("each"); v != nil {
		each, eachAt = d.each(v, dialect)
	}
	v := f.get("to")
	if v == nil {
		return nil, false
	}
	r.At = d.file.PlaceOf(v)
	to, ok := form[targetForm](d, v, `"to"`)
	if !ok {
		return nil, false
	}
	parts, ok := d.target(to, r, dialect, f.get("each") != nil)
	if !ok {
		return nil, false
	}
	r.Index = newReferenceIndex(r.Name, parts...)
	r.Index.Each, r.Index.EachAt = each, eachAt
	if v := f.get("when"); v != nil {
		r.Index.When, r.Index.WhenAt = d.filter(v, dialect), Origin{Node: v}
	}
	d.impossible(r.Index)
	return r, r.Index.Complete() && (each != nil || f.get("each") == nil)
}

// target reads what is referred to.
func (d *decoding) target(f fieldMap, r *Reference, dialect jsonpath.Dialect, within bool) ([]Part, bool) {
	group, kind, ok := d.targetType(f, r, dialect, within)
	if !ok {
		return nil, false
	}
	name := Part{Name: PartName}
	if v := f.get("name"); v != nil {
		name.Sources = d.appendSource(nil, v, `"name"`, dialect, within)
		if len(name.Sources) > 0 && !name.Singular() && !within {
			d.failAt(CodeContradict, v, "the path to the name can lead to many names", "name the elements by each: on the reference, and write the path within one of them")
			return nil, false
		}
	}
	parts := []Part{name, d.targetNamespace(f.get("namespace"), dialect, within)}
	if r.To.IsFixed() {
		return parts, true
	}
	return append([]Part{group, kind}, parts...), true
}

// targetType reads the type, into parts unless it is fixed.
func (d *decoding) targetType(f fieldMap, r *Reference, dialect jsonpath.Dialect, within bool) (group, kind Part, ok bool) {
	switch groups := f.present("group", "apiVersion"); {
	case len(groups) == 2:
		d.failAt(CodeContradict, f.keys["apiVersion"], `"group" and "apiVersion" do not go together`, "keep one of them")
		return group, kind, false
	case len(groups) == 0:
		if !f.excuse("group", "apiVersion") {
			d.fail(CodeRequired, d.file.PlaceOf(f.node), `the target has neither "group" nor "apiVersion"`, `add group: with the API group ("" for the core group), or apiVersion: {path: ...}`)
		}
		return group, kind, false
	default:
		group, ok = d.fixedOrField(f.get(groups[0]), PartGroup, groups[0], dialect, within)
		if groups[0] == "apiVersion" {
			group.Transforms = []Transform{groupOf}
			if group.Constant {
				d.failAt(CodeContradict, f.get("apiVersion"), `"apiVersion" is for a field of the object`, "write group: with the API group alone")
				ok = false
			}
		}
	}
	switch names := f.present("resource", "kind"); {
	case len(names) == 2:
		d.failAt(CodeContradict, f.keys["kind"], `"resource" and "kind" do not go together`, "keep one of them")
		return group, kind, false
	case len(names) == 0:
		if !f.excuse("resource", "kind") {
			d.fail(CodeRequired, d.file.PlaceOf(f.node), `the target has neither "resource" nor "kind"`, "add resource: with the plural name, or kind: with the kind or {path: ...}")
		}
		return group, kind, false
	case names[0] == "resource":
		v := f.get("resource")
		resource, _ := patterned[targetForm](d, "resource", v, `"resource"`)
		r.To = TargetType{Group: group.Missing.Value, Resource: resource}
		if ok && !group.Constant {
			d.failAt(CodeContradict, v, `"resource" needs a fixed group`, "write kind: for a type that fields of the object say")
			ok = false
		}
		return group, kind, ok && r.To.Resource != ""
	}
	kind, good := d.fixedOrField(f.get("kind"), PartKind, "kind", dialect, within)
	if ok && good && group.Constant && kind.Constant {
		r.To = TargetType{Group: group.Missing.Value, Kind: kind.Missing.Value}
	}
	return group, kind, ok && good
}

// fixedOrField reads a text that holds for all objects, or the path to it.
func (d *decoding) fixedOrField(n *yaml.Node, part, field string, dialect jsonpath.Dialect, within bool) (Part, bool) {
	p := Part{Name: part}
	if n.Kind != yaml.MappingNode {
		s, ok := d.textOrEmpty(n, fmt.Sprintf("%q", field), "write a text, or {path: ...}", field == "group")
		p.Constant, p.Missing = true, Missing{Kind: MissingValue, Value: s, At: n}
		return p, ok
	}
	f, ok := form[fieldForm](d, n, fmt.Sprintf("%q", field))
	if !ok {
		return p, false
	}
	v := f.get("path")
	if v == nil {
		return p, false
	}
	p.Sources = d.appendSource(nil, v, `"path"`, dialect, within)
	if len(p.Sources) > 0 && !p.Singular() {
		d.failAt(CodeContradict, v, fmt.Sprintf("the path to the %s can lead to many", field), "name the elements by each: on the reference, and write the path within one of them")
		return p, false
	}
	if v := f.get("missing"); v != nil {
		if s, ok := d.textOrEmpty(v, `"missing"`, "write the text that stands for a missing one", true); ok {
			p.Missing = Missing{Kind: MissingValue, Value: s, At: v}
		}
	}
	return p, len(p.Sources) > 0
}

// textOrEmpty reads a text, which may be empty where that means something.
func (d *decoding) textOrEmpty(n *yaml.Node, what, hint string, empty bool) (string, bool) {
	if empty && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value == "" {
		return "", true
	}
	return d.text(n, what, hint)
}

// targetNamespace reads the namespace of targets: the object's own by default.
func (d *decoding) targetNamespace(n *yaml.Node, dialect jsonpath.Dialect, within bool) Part {
	own := ownNamespace()
	own.Root = within
	p := Part{Name: PartNamespace, Missing: Missing{Kind: MissingValue}}
	switch {
	case n == nil, n.Kind == yaml.ScalarNode && n.Value == "own":
		p.Sources = []Source{own}
	case n.Kind == yaml.ScalarNode && n.Value == "none":
		p.Constant = true
	case n.Kind == yaml.MappingNode:
		if d.unquoted(n, `"namespace"`) {
			return p
		}
		f, _ := form[targetNamespaceForm](d, n, `"namespace"`)
		p.Constant, p.Missing.At = true, n
		if v := f.get("value"); v != nil {
			p.Missing.Value, _ = patterned[targetNamespaceForm](d, "value", v, "the name of a namespace")
		}
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value != "" && !strings.ContainsAny(n.Value[:1], ".$@{["):
		d.failAt(CodeUnknownValue, n, fmt.Sprintf("%q is neither own nor none nor a path", n.Value),
			fmt.Sprintf("write {value: %s} for the namespace of that name, or .%s for the path to a field", n.Value, n.Value))
	default:
		p.Sources = d.appendSource(nil, n, `"namespace"`, dialect, within)
		if len(p.Sources) > 0 && !p.Singular() {
			d.failAt(CodeContradict, n, "the path to the namespace can lead to many", "write own, none, or a path to one namespace")
			p.Sources = nil
			return p
		}
		p.Sources = append(p.Sources, own)
	}
	return p
}
