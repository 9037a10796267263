package config

import (
	"errors"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// index reads one index; names holds those of the resource so far.
func (d *decoding) index(n *yaml.Node, names map[string]string) (*Index, bool) {
	f, ok := form[indexForm](d, n, "an index")
	if !ok {
		return nil, false
	}
	index := &Index{}
	if v := f.get("name"); v != nil {
		index.Name = d.indexName(v, names)
	}
	limits := d.defaults.limits
	d.limits(f, &limits)
	index.MaxValues, index.MaxValueBytes = limits.maxValues, limits.maxValueBytes
	if v := f.get("when"); v != nil {
		index.When, index.WhenAt = d.filter(v, limits.dialect), Origin{Node: v}
	}
	if v := f.get("order"); v != nil {
		s, _ := d.choice(v, `"order"`, wordsOf[indexForm]("order")...)
		index.Sorted = s == "sorted"
	}
	if v := f.get("unique"); v != nil {
		index.Unique = d.unique(v)
	}
	d.source(f, index, limits.dialect)
	d.missingValues(index)
	d.impossible(index)
	return index, true
}

// unique reads whether no two objects should have the same value.
func (d *decoding) unique(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" {
		hint := "write unique: warn, because a cache cannot refuse what the server has"
		if b := strings.ToLower(n.Value); b == "false" {
			hint = "leave it out, or write unique: warn"
		}
		d.failAt(CodeUnknownValue, n, fmt.Sprintf("%q cannot be %s", "unique", n.Value), hint)
		return false
	}
	s, _ := d.choice(n, `"unique"`, wordsOf[indexForm]("unique")...)
	return s == "warn"
}

// missingValues checks that what stands for a missing value is of the type of the part.
func (d *decoding) missingValues(index *Index) {
	for n := range index.Parts {
		p := &index.Parts[n]
		if p.Missing.Kind != MissingValue {
			continue
		}
		if _, ok := p.Encode(p.Missing.Value, index.Sorted); !ok {
			d.failAt(CodeValue, p.Missing.At, p.Type.Mismatch(p.Missing.Value), "the value has to be of the type of the index")
		}
	}
}

func (d *decoding) indexName(v *yaml.Node, names map[string]string) string {
	name, ok := patterned[indexForm](d, "name", v, "the name of an index")
	if !ok {
		return ""
	}
	d.claim(names, "index", name, v)
	switch name {
	case cache.NamespaceIndex:
		d.failAt(CodeTaken, v, fmt.Sprintf("%q is the name of an index that informers have already", name), "choose another name, or use that index")
	case "name", "age":
		d.failAt(CodeTaken, v, fmt.Sprintf("all objects can be sorted by %q", name), "choose another name")
	}
	return name
}

// indexSources are the fields that say where the values of an index are.
var indexSources = oneOf[indexForm]()

// source reads where the values of an index come from.
func (d *decoding) source(f fieldMap, index *Index, dialect jsonpath.Dialect) {
	names := f.present(indexSources...)
	if len(names) == 0 && f.excuse(indexSources...) {
		return
	}
	if len(names) == 0 {
		d.fail(CodeRequired, d.file.PlaceOf(f.node), "the index has no values", "add one of "+strings.Join(indexSources, ", "))
		return
	}
	for _, other := range names[1:] {
		d.failAt(CodeContradict, f.keys[other], fmt.Sprintf("%q and %q do not go together", names[0], other), "keep one of them, or join several values by key")
	}
	composite := names[0] == "key" || names[0] == "owner"
	for _, extra := range f.present("type", "transform", "missing") {
		if composite {
			d.failAt(CodeContradict, f.keys[extra], fmt.Sprintf("%q and %q do not go together", names[0], extra), elementHint(names[0]))
		}
	}
	if v := f.get("each"); v != nil {
		if names[0] == "key" {
			index.Each, index.EachAt = d.each(v, dialect)
			index.Unreadable = index.Each == nil
		} else {
			d.failAt(CodeContradict, f.keys["each"], fmt.Sprintf("%q without %q has no meaning", "each", "key"), "add key: with paths into the element, or write path: to the value itself")
		}
	}
	switch names[0] {
	case "key":
		d.composite(f.get("key"), index, dialect, f.get("each") != nil)
	case "owner":
		d.owner(f.get("owner"), index)
	default:
		p, _ := d.part(f, dialect, false)
		index.Parts = []Part{p}
	}
}

func elementHint(source string) string {
	if source == "key" {
		return "write it in the elements of key"
	}
	return "use each: .metadata.ownerReferences[*] with key instead of owner"
}

// part reads what a plain index and a key have in common. within says that paths begin at an element.
func (d *decoding) part(f fieldMap, dialect jsonpath.Dialect, within bool) (p Part, ok bool) {
	names := f.present(partSources...)
	if len(names) == 0 {
		return p, false
	}
	switch v := f.get(names[0]); names[0] {
	case "path":
		p.Sources = d.appendSource(nil, v, `"path"`, dialect, within)
	case "paths":
		items, _ := d.list(v, `"paths"`, "write the paths in the order in which they are tried")
		for _, item := range items {
			p.Sources = d.appendSource(p.Sources, item, "a path", dialect, within)
		}
	default:
		if s, ok := d.metadataKey(v, names[0]); ok {
			s.Root = within
			p.Sources = []Source{s}
		}
	}
	if v := f.get("type"); v != nil {
		s, _ := d.choice(v, `"type"`, wordsOf[indexForm]("type")...)
		p.Type, _ = sortkey.Named(s)
		p.TypeAt = v
	}
	if v := f.get("transform"); v != nil {
		p.Transforms = d.transforms(v)
	}
	if v := f.get("missing"); v != nil {
		var path []Source
		p.Missing, path = d.missing(v, dialect, within)
		p.Sources = append(p.Sources, path...)
	}
	return p, true
}

// partSources are the fields that say where the values of a part are.
var partSources = oneOf[keyForm]()

// appendSource reads a path to values.
func (d *decoding) appendSource(to []Source, n *yaml.Node, what string, dialect jsonpath.Dialect, within bool) []Source {
	path, at := d.path(n, what, dialect)
	if path == nil {
		return to
	}
	return append(to, Source{Path: path, Root: within && path.Rooted(), At: at})
}

// metadataKey reads the name of a label or an annotation.
func (d *decoding) metadataKey(n *yaml.Node, field string) (Source, bool) {
	name, ok := d.text(n, fmt.Sprintf("%q", field), "write the whole name, such as example.io/team")
	ok = ok && d.qualified(n, name, field)
	return Source{Path: jsonpath.FromSegments("metadata", field+"s", name), At: Origin{Node: n, whole: true}}, ok
}

// composite reads the keys of an index over several values.
func (d *decoding) composite(n *yaml.Node, index *Index, dialect jsonpath.Dialect, within bool) {
	const hint = "add elements such as {name: ns, path: .metadata.namespace}"
	items, _ := d.list(n, `"key"`, hint)
	names := map[string]string{}
	var many *yaml.Node // the path of the first key with many values
	for _, item := range items {
		f, ok := form[keyForm](d, item, "an element of key")
		if !ok {
			continue
		}
		name := ""
		if v := f.get("name"); v != nil {
			if name, ok = patterned[keyForm](d, "name", v, "the name of a key"); ok {
				d.claim(names, "key", name, v)
			}
		}
		sources := f.present(partSources...)
		if len(sources) > 1 {
			d.failAt(CodeContradict, f.keys[sources[1]], fmt.Sprintf("%q and %q do not go together", sources[0], sources[1]), "keep one of them")
		}
		p, ok := d.part(f, dialect, within)
		if !ok && f.excuse(partSources...) {
			continue
		}
		if !ok {
			d.fail(CodeRequired, d.file.PlaceOf(item), "the element of key has no value", "add one of "+strings.Join(partSources, ", "))
			continue
		}
		if !p.Singular() {
			at := p.Sources[0].At.Node
			if many != nil {
				d.failAt(CodeManyKeys, at, fmt.Sprintf("this key and the one at %s can both have many values", d.file.PlaceOf(many)), "use each: for values of the same element, or index by one value only")
			}
			many = at
		}
		p.Name = name
		index.Keys, index.Parts = append(index.Keys, name), append(index.Parts, p)
	}
}

// owner writes out what the sugar stands for.
func (d *decoding) owner(n *yaml.Node, index *Index) {
	each := jsonpath.MustCompile(".metadata.ownerReferences[*]")
	if s, ok := d.choice(n, `"owner"`, wordsOf[indexForm]("owner")...); ok && s == "controller" {
		each = jsonpath.MustCompile(".metadata.ownerReferences[?(@.controller==true)]")
	}
	at := Origin{Node: n, whole: true}
	index.Each, index.EachAt = each, at
	for _, key := range []string{"kind", "name"} {
		index.Keys = append(index.Keys, key)
		index.Parts = append(index.Parts, Part{Name: key, Sources: []Source{{Path: jsonpath.FromSegments(key), At: at}}})
	}
}

// path reads a path: an expression, or a list of names. It is nil when there is none to use.
func (d *decoding) path(n *yaml.Node, what string, dialect jsonpath.Dialect) (*jsonpath.Path, Origin) {
	at := Origin{Node: n}
	const hint = "write a path such as .spec.name, or a list of names such as [spec, name]"
	if n.Kind == yaml.SequenceNode {
		items, ok := d.list(n, what, hint)
		names := make([]string, 0, len(items))
		for _, item := range items {
			if s, good := d.text(item, "a name in a path", "write the name of a field"); good {
				names = append(names, s)
			} else {
				ok = false
			}
		}
		if !ok || d.pathAsName(items) {
			return nil, at
		}
		at.segments = items
		return jsonpath.FromSegments(names...), at
	}
	if d.unquoted(n, what) {
		return nil, at
	}
	text, ok := d.text(n, what, hint)
	if !ok {
		return nil, at
	}
	p, err := jsonpath.Compile(text, jsonpath.WithDialect(dialect))
	if err != nil {
		d.expressionError(n, err)
		return nil, at
	}
	d.expressionWarnings(n, p.Warnings())
	return p, at
}

// unquoted reports an expression that YAML reads as something else than text for want of quotes: {.a} is a
// map to it, and !(@.a) a tag.
func (d *decoding) unquoted(n *yaml.Node, what string) bool {
	text := ""
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Kind == yaml.ScalarNode && isNull(n.Content[1]) && n.Style&yaml.FlowStyle != 0:
		text = "{" + n.Content[0].Value + "}"
	case n.Kind == yaml.ScalarNode && strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") && strings.ContainsAny(n.Tag, "(@"):
		text = strings.TrimSpace(n.Tag + " " + n.Value)
	default:
		return false
	}
	d.failAt(CodeWrongType, n, what+" needs quotes around it", "write '"+strings.ReplaceAll(text, "'", "''")+"'")
	return true
}

// each reads the path to the elements. It must not have "..": elements within elements would be read many times.
func (d *decoding) each(n *yaml.Node, dialect jsonpath.Dialect) (*jsonpath.Path, Origin) {
	path, at := d.path(n, `"each"`, dialect)
	if path == nil {
		return nil, at
	}
	if step, ok := recursiveStep(path.Steps()); ok {
		d.fail(Code(jsonpath.CodeWork), d.file.Within(n, step.Offset, step.End), `".." in "each" reads elements many times`,
			"name the fields on the way to the elements")
		return nil, at
	}
	return path, at
}

// recursiveStep returns the step with "..", which can be within a union.
func recursiveStep(steps []jsonpath.Step) (jsonpath.Step, bool) {
	for _, step := range steps {
		if step.Recursive {
			return step, true
		}
		for _, s := range step.Selectors {
			if inner, ok := recursiveStep(s.Path); ok {
				return inner, true
			}
		}
	}
	return jsonpath.Step{}, false
}

func (d *decoding) filter(n *yaml.Node, dialect jsonpath.Dialect) *jsonpath.Filter {
	if d.unquoted(n, `"when"`) {
		return nil
	}
	text, ok := d.text(n, `"when"`, `write a condition such as '@.spec.paused == true'`)
	if !ok {
		return nil
	}
	f, err := jsonpath.CompileFilter(text, jsonpath.WithDialect(dialect))
	if err != nil {
		d.expressionError(n, err)
		return nil
	}
	d.expressionWarnings(n, f.Warnings())
	return f
}

func (d *decoding) expressionError(n *yaml.Node, err error) {
	var e *jsonpath.Error
	if !errors.As(err, &e) {
		d.failAt(CodeWrongType, n, err.Error(), "correct the expression")
		return
	}
	d.expression(n, e.Diagnostic)
}

func (d *decoding) expressionWarnings(n *yaml.Node, warnings []jsonpath.Diagnostic) {
	for _, w := range warnings {
		d.expression(n, w)
	}
}

// expression moves a finding about an expression to its place in the file.
func (d *decoding) expression(n *yaml.Node, e jsonpath.Diagnostic) {
	hint := e.Hint
	if hint == "" {
		hint = "correct the expression"
	}
	d.fail(Code(e.Code), d.file.Within(n, e.Offset, e.Offset+e.Length), e.Message, hint)
}
