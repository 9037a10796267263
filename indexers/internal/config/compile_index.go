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

// index compiles one index; names holds the index names of the resource so far.
func (d *decoder) index(f *indexForm, names map[string]string) *Index {
	limits := d.defaults.with(f.Dialect, f.MaxValues, f.MaxValueBytes)
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
	p := paths{decoder: d, dialect: limits.dialect}
	index.When, index.WhenAt = p.filter(f.When)
	p.values(f, index)
	d.missingValues(index)
	d.reportImpossible(index)
	return index
}

func (p paths) values(f *indexForm, index *Index) {
	switch f.chosen[0] {
	case "":
	case "key":
		p.within = f.Each.node != nil
		index.Each, index.EachAt = p.each(f.Each)
		index.Unreadable = p.within && index.Each == nil
		p.composite(f.Key.items, index)
	case "owner":
		index.owner(f.Owner)
	default:
		index.Parts = []Part{p.part(valueForms{
			f.chosen[0], f.Path, f.Paths, f.Label, f.Annotation, f.Type, f.Transform, f.Missing,
		})}
	}
}

// missingValues checks that replacements of missing values have the type of the part.
func (d *decoder) missingValues(index *Index) {
	for n := range index.Parts {
		p := &index.Parts[n]
		if p.Missing.Kind != MissingValue {
			continue
		}
		if _, ok := p.Encode(p.Missing.Value, index.Sorted); !ok {
			message, hint, _ := strings.Cut(p.Type.Mismatch(p.Missing.Value), "; ")
			d.failAt(CodeValue, p.Missing.At, message, hint)
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

// part compiles a plain index or an element of key.
func (p paths) part(f valueForms) (part Part) {
	switch f.chosen {
	case "path":
		part.Sources = p.sources(nil, f.path.node, `"path"`)
	case "paths":
		for _, item := range f.paths.items {
			part.Sources = p.sources(part.Sources, item.node, "a path")
		}
	default:
		if name := cmp.Or(f.label, f.annotation); name.value != "" &&
			p.qualified(name.node, name.value, f.chosen) {
			part.Sources = []Source{{
				Path: jsonpath.FromSegments("metadata", f.chosen+"s", name.value), Root: p.within,
				At: Origin{Node: name.node, whole: true},
			}}
		}
	}
	if f.kind.node != nil {
		part.Type, _ = sortkey.TypeNamed(f.kind.value)
		part.TypeAt = f.kind.node
	}
	for i := range f.transform.items {
		if t := p.transform(&f.transform.items[i]); t.Apply != nil {
			part.Transforms = append(part.Transforms, t)
		}
	}
	if f.missing.node != nil {
		var path []Source
		part.Missing, path = p.missing(&f.missing)
		part.Sources = append(part.Sources, path...)
	}
	return part
}

// composite compiles the parts of a composite index.
func (p paths) composite(keys []keyForm, index *Index) {
	names := map[string]string{}
	var many *yaml.Node // the path of the first multi-valued key
	for i := range keys {
		f := &keys[i]
		p.checkUnique(names, "key", f.Name)
		if f.chosen[0] == "" {
			continue
		}
		part := p.part(valueForms{
			f.chosen[0], f.Path, f.Paths, f.Label, f.Annotation, f.Type, f.Transform, f.Missing,
		})
		part.Name = f.Name.value
		if !part.Singular() {
			at := part.Sources[0].At.Node
			if many != nil {
				p.failAt(CodeManyKeys, at,
					fmt.Sprintf("this key and the one at %s can both have many values", p.file.PlaceOf(many)),
					"use each: for values of the same element, or index by one value only")
			}
			many = at
		}
		index.Keys, index.Parts = append(index.Keys, part.Name), append(index.Parts, part)
	}
}

// owner adds the parts that owner: is short for.
func (index *Index) owner(f textField) {
	each := ".metadata.ownerReferences[*]"
	if f.value == "controller" {
		each = ".metadata.ownerReferences[?(@.controller==true)]"
	}
	at := Origin{Node: f.node, whole: true}
	index.Each, index.EachAt = jsonpath.MustCompile(each), at
	for _, key := range []string{"kind", "name"} {
		index.Keys = append(index.Keys, key)
		source := Source{Path: jsonpath.FromSegments(key), At: at}
		index.Parts = append(index.Parts, Part{Name: key, Sources: []Source{source}})
	}
}

// missing compiles the replacement of missing values.
func (p paths) missing(f *missingForm) (m Missing, path []Source) {
	const hint = "write skip, null, report, {value: X} or {path: X}"
	n := f.node
	switch {
	case isNull(n) && strings.EqualFold(n.Value, "null"):
		return Missing{Kind: MissingNull}, nil
	case isNull(n) || n.Kind == yaml.SequenceNode:
		p.reportWrongKind(n, `"missing"`, "a word or a map", hint)
		return m, nil
	case n.Kind == yaml.MappingNode:
		p.form(f, n, `"missing"`)
		if f.Value.node != nil {
			// Values are used as written: 1.10 stays 1.10.
			return Missing{Kind: MissingValue, Value: f.Value.node.Value, At: f.Value.node}, nil
		}
		if f.keys["value"] == nil && f.Path.node != nil {
			path = p.sources(nil, f.Path.node, `"path"`)
		}
		for i := range path {
			path[i].Default = true
		}
		return m, path
	}
	switch s, _ := p.choiceOr(hint, n, `"missing"`, "skip", "null", "report"); s {
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
