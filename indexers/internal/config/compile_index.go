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
	limits := d.defaults.override(f.Dialect, f.MaxValues, f.MaxValueBytes)
	index := &Index{
		Name: f.Name.value, Sorted: f.Order.value == "sorted", Unique: f.Unique.value == "warn",
		MaxValues: limits.maxValues, MaxValueBytes: limits.maxValueBytes,
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
	p := pathCompiler{decoder: d, dialect: limits.dialect}
	index.When, index.WhenOrigin = p.compileFilter(f.When)
	p.compileValues(f, index)
	d.checkMissingValues(index)
	d.reportImpossible(index)
	return index
}

func (p pathCompiler) compileValues(f *indexForm, index *Index) {
	switch f.chosenFields[0] {
	case "":
	case "key":
		p.relativeToEach = f.Each.node != nil
		index.Each, index.EachOrigin = p.compileEach(f.Each)
		index.Unreadable = p.relativeToEach && index.Each == nil
		p.compileComposite(f.Key.items, index)
	case "owner":
		index.addOwnerParts(f.Owner)
	default:
		index.Parts = []Part{p.compilePart(valueForms{
			f.chosenFields[0], f.Path, f.Paths, f.Label, f.Annotation, f.Type, f.Transform, f.Missing,
		})}
	}
}

// checkMissingValues checks that replacements of missing values have the type of the part.
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

// valueForms are the fields that plain indexes and elements of key share.
type valueForms struct {
	chosen            string // the field that is set among the next four
	path              pathForm
	paths             listField[pathForm]
	label, annotation textField
	kind              textField
	transform         listField[transformForm]
	missing           missingForm
}

// compilePart compiles a plain index or an element of key.
func (p pathCompiler) compilePart(f valueForms) (compilePart Part) {
	switch f.chosen {
	case "path":
		compilePart.Sources = p.compileSources(nil, f.path.node, `"path"`)
	case "paths":
		for _, item := range f.paths.items {
			compilePart.Sources = p.compileSources(compilePart.Sources, item.node, "a path")
		}
	default:
		if name := cmp.Or(f.label, f.annotation); name.value != "" &&
			p.checkQualifiedName(name.node, name.value, f.chosen) {
			compilePart.Sources = []Source{{
				Path: jsonpath.FromSegments("metadata", f.chosen+"s", name.value), Root: p.relativeToEach,
				Origin: Origin{Node: name.node, wholeNodeOnly: true},
			}}
		}
	}
	if f.kind.node != nil {
		compilePart.Type, _ = sortkey.TypeNamed(f.kind.value)
		compilePart.TypeNode = f.kind.node
	}
	for i := range f.transform.items {
		if t := p.compileTransform(&f.transform.items[i]); t.Apply != nil {
			compilePart.Transforms = append(compilePart.Transforms, t)
		}
	}
	if f.missing.node != nil {
		var path []Source
		compilePart.Missing, path = p.compileMissing(&f.missing)
		compilePart.Sources = append(compilePart.Sources, path...)
	}
	return compilePart
}

// compileComposite compiles the parts of a composite index.
func (p pathCompiler) compileComposite(keys []keyForm, index *Index) {
	names := map[string]string{}
	var multiValued *yaml.Node // the path of the first multi-valued key
	for i := range keys {
		f := &keys[i]
		p.checkUnique(names, "key", f.Name)
		if f.chosenFields[0] == "" {
			continue
		}
		part := p.compilePart(valueForms{
			f.chosenFields[0], f.Path, f.Paths, f.Label, f.Annotation, f.Type, f.Transform, f.Missing,
		})
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

// addOwnerParts adds the parts that owner: is short for.
func (index *Index) addOwnerParts(f textField) {
	each := ".metadata.ownerReferences[*]"
	if f.value == "controller" {
		each = ".metadata.ownerReferences[?(@.controller==true)]"
	}
	at := Origin{Node: f.node, wholeNodeOnly: true}
	index.Each, index.EachOrigin = jsonpath.MustCompile(each), at
	for _, key := range []string{"kind", "name"} {
		index.Keys = append(index.Keys, key)
		source := Source{Path: jsonpath.FromSegments(key), Origin: at}
		index.Parts = append(index.Parts, Part{Name: key, Sources: []Source{source}})
	}
}

// compileMissing compiles the replacement of missing values.
func (p pathCompiler) compileMissing(f *missingForm) (m Missing, path []Source) {
	const hint = "write skip, null, report, {value: X} or {path: X}"
	n := f.node
	switch {
	case isNull(n) && strings.EqualFold(n.Value, "null"):
		return Missing{Kind: MissingNull}, nil
	case isNull(n) || n.Kind == yaml.SequenceNode:
		p.reportWrongKind(n, `"missing"`, "a word or a map", hint)
		return m, nil
	case n.Kind == yaml.MappingNode:
		p.decodeForm(f, n, `"missing"`)
		if f.Value.node != nil {
			// Values are used as written: 1.10 stays 1.10.
			return Missing{Kind: MissingValue, Value: f.Value.node.Value, Node: f.Value.node}, nil
		}
		if f.keys["value"] == nil && f.Path.node != nil {
			path = p.compileSources(nil, f.Path.node, `"path"`)
		}
		for i := range path {
			path[i].Default = true
		}
		return m, path
	}
	switch s, _ := p.decodeChoiceOr(hint, n, `"missing"`, "skip", "null", "report"); s {
	case "null": // in quotes
		m.Kind = MissingNull
	case "report":
		m.Kind = MissingReport
	}
	return m, nil
}

// read checks that a node is a text, a number or a boolean.
func (f *valueForm) read(d *decoder, n *yaml.Node, at valueContext) bool {
	const wanted, hint = "text, a number or a boolean", "write skip, null, report, {value: X} or {path: X}"
	switch {
	case isNull(n):
		d.reportWrongKind(n, at.name, wanted, "write missing: null, or \"null\" in quotes for the text")
	case d.checkNodeKind(n, yaml.ScalarNode, at.name, wanted, hint):
		f.node = n
	}
	return f.node != nil
}
