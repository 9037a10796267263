package config

import (
	"cmp"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// compileIndex compiles one index; names holds the index names of the resource so far.
func (d *decoder) compileIndex(f *indexForm, names map[string]string) *Index {
	index := &Index{
		Name: f.Name.value, Sorted: f.Order.value == "sorted",
		MaxValues: d.defaults.maxValues, MaxValueBytes: d.defaults.maxValueBytes,
	}
	d.checkUnique(names, "index", f.Name)
	switch name := f.Name; name.value {
	case cache.NamespaceIndex:
		message := fmt.Sprintf("%q is the name of a built-in index", name.value)
		d.failAt(CodeDuplicateName, name.node, message, "choose another name, or use that index")
	case "name", "age":
		message := fmt.Sprintf("%q is the name of a built-in sort order", name.value)
		d.failAt(CodeDuplicateName, name.node, message, "choose another name")
	}
	index.When, index.WhenOrigin = d.compileFilter(f.When)
	p := pathCompiler{decoder: d, relativeToEach: f.Each.node != nil && f.chosenFields[0] == "key"}
	switch f.chosenFields[0] {
	case "":
	case "key":
		index.Each, index.EachOrigin = p.compileEach(f.Each)
		index.Unreadable = p.relativeToEach && index.Each == nil
		p.compileComposite(f.Key.items, index)
	default:
		index.Parts = []Part{p.compilePart(&f.partForm)}
	}
	d.checkMissingValues(index)
	d.reportImpossible(index)
	return index
}

// checkMissingValues reports each "missing: {value: X}" whose value does not have the type of its part.
func (d *decoder) checkMissingValues(index *Index) {
	for n := range index.Parts {
		p := &index.Parts[n]
		if p.Missing.Kind != MissingValue {
			continue
		}
		if _, ok := p.Encode(p.Missing.Value, index.Sorted); !ok {
			message, hint, _ := strings.Cut(p.Type.Mismatch(p.Missing.Value), "; ")
			d.failAt(CodeValue, p.Missing.Node, message, hint)
		}
	}
}

// compilePart compiles the sources, type and transforms of a plain index, or of one key of a composite index.
func (p pathCompiler) compilePart(f *partForm) (part Part) {
	switch chosen := f.chosenFields[0]; chosen {
	case "path":
		part.Sources = p.compileSources(nil, f.Path.node, `"path"`)
	case "paths":
		for _, item := range f.Paths.items {
			part.Sources = p.compileSources(part.Sources, item.node, "a path")
		}
	default:
		if name := cmp.Or(f.Label, f.Annotation); name.value != "" &&
			p.checkQualifiedName(name.node, name.value, chosen) {
			part.Sources = []Source{{
				Path: jsonpath.FromSegments("metadata", chosen+"s", name.value), Root: p.relativeToEach,
				Origin: Origin{Node: name.node, wholeNodeOnly: true},
			}}
		}
	}
	if f.Type.node != nil {
		part.Type, _ = sortkey.TypeNamed(f.Type.value)
		part.TypeNode = f.Type.node
	}
	for i := range f.Transform.items {
		if t := p.compileTransform(&f.Transform.items[i]); t.Apply != nil {
			part.Transforms = append(part.Transforms, t)
		}
	}
	if f.Missing.node != nil {
		part.Missing = p.compileMissing(&f.Missing)
	}
	return part
}

// compileComposite compiles the parts of a composite index.
func (p pathCompiler) compileComposite(keys []keyForm, index *Index) {
	names := map[string]string{}
	var multiValued *yaml.Node // the path of the latest key that can have many values
	for i := range keys {
		f := &keys[i]
		p.checkUnique(names, "key", f.Name)
		if f.chosenFields[0] == "" {
			continue
		}
		part := p.compilePart(&f.partForm)
		part.Name = f.Name.value
		if !part.Singular() {
			at := part.Sources[0].Origin.Node
			if multiValued != nil {
				p.failAt(CodeManyKeys, at,
					fmt.Sprintf("this key and the one at %s can both have many values", p.file.PositionOf(multiValued)),
					"use each: for values of the same element, or index by one value only")
			}
			multiValued = at
		}
		index.Keys, index.Parts = append(index.Keys, part.Name), append(index.Parts, part)
	}
}

// compileMissing compiles the replacement of missing values.
func (d *decoder) compileMissing(f *missingForm) (m Missing) {
	const hint = "write skip, null, report or {value: X}"
	n := f.node
	switch {
	case isNull(n) && strings.EqualFold(n.Value, "null"):
		return Missing{Kind: MissingNull}
	case isNull(n) || n.Kind == yaml.SequenceNode:
		d.reportWrongKind(n, `"missing"`, "a word or a map", hint)
		return m
	case n.Kind == yaml.MappingNode:
		if d.decodeForm(f, n, `"missing"`); f.Value.node != nil {
			// Values are used as written: 1.10 stays 1.10.
			return Missing{Kind: MissingValue, Value: f.Value.node.Value, Node: f.Value.node}
		}
		return m
	}
	switch s, _ := d.decodeChoiceOr(hint, n, `"missing"`, "skip", "null", "report"); s {
	case "null": // in quotes
		m.Kind = MissingNull
	case "report":
		m.Kind = MissingReport
	}
	return m
}

// read checks that a node is a text, a number or a boolean.
func (f *scalarForm) read(d *decoder, n *yaml.Node, at valueContext) bool {
	const wanted = "text, a number or a boolean"
	switch {
	case isNull(n):
		d.reportWrongKind(n, at.name, wanted, "write missing: null, or \"null\" in quotes for the text")
	case d.checkNodeKind(n, yaml.ScalarNode, at.name, wanted, at.tag.Get("hint")):
		f.node = n
	}
	return f.node != nil
}
