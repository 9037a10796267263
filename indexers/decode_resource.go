package indexers

import (
	"fmt"
	"regexp"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// indexDefaults is spec.defaults.index.
type indexDefaults struct {
	dialect       jsonpath.Dialect
	maxValues     int
	maxValueBytes int
}

const (
	mostValues     = 10000
	mostValueBytes = 1 << 20
)

// document reads one IndexConfig.
func (d *decoding) document(n *yaml.Node) {
	top, ok := d.mapping(n, "an "+Kind, []string{"apiVersion", "kind", "metadata", "spec"})
	if !ok || !d.ours(top) {
		return
	}
	d.metadata(top)
	d.defaults = indexDefaults{maxValues: DefaultMaxValues, maxValueBytes: DefaultMaxValueBytes}
	value, ok := d.required(top, "the "+Kind, "spec", "add spec with a list of resources")
	if !ok {
		return
	}
	spec, ok := d.mapping(value, `"spec"`, []string{"defaults", "resources"})
	if !ok {
		return
	}
	if v := spec.get("defaults"); v != nil {
		d.readDefaults(v)
	}
	const hint = "add at least one resource, with name, match and indexes"
	if v, ok := d.required(spec, "spec", "resources", hint); ok {
		items, _ := d.list(v, `"resources"`, hint)
		for _, item := range items {
			d.resource(item)
		}
	}
}

// ours checks apiVersion and kind. Of another version, nothing else is read: its fields may mean
// something else.
func (d *decoding) ours(top fields) bool {
	good := true
	for _, f := range []struct{ name, value string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		hint := fmt.Sprintf("write %s: %s", f.name, f.value)
		v, ok := d.required(top, "the "+Kind, f.name, hint)
		if !ok {
			continue // the rest shows well enough what is meant
		}
		if s, ok := d.text(v, fmt.Sprintf("%q", f.name), hint); ok && s != f.value {
			d.failAt(CodeNotOurs, v, fmt.Sprintf("%s %q is not known", f.name, s), hint)
			good = false
		}
	}
	return good
}

func (d *decoding) metadata(top fields) {
	const hint = "add metadata: {name: ...}, a name of your choice"
	v, ok := d.required(top, "the "+Kind, "metadata", hint)
	if !ok {
		return
	}
	meta, ok := d.mapping(v, `"metadata"`, []string{"name"})
	if !ok {
		return
	}
	if v, ok := d.required(meta, "metadata", "name", hint); ok {
		if name, ok := d.name(v, "the name"); ok {
			d.config = name
			d.claim(d.configs, Kind, name, v)
		}
	}
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

// name reads a name of our own.
func (d *decoding) name(n *yaml.Node, what string) (string, bool) {
	const hint = "use letters, digits, and between them . _ -, at most 253 in all"
	s, ok := d.text(n, what, hint)
	if ok && !nameForm.MatchString(s) {
		d.failAt(CodeName, n, fmt.Sprintf("%q is not a name", s), hint)
		return "", false
	}
	return s, ok
}

// claim records a name that has to be unique.
func (d *decoding) claim(names map[string]string, what, name string, n *yaml.Node) {
	at := d.file.placeOf(n)
	if before, taken := claim(names, name, d.file, at); taken {
		d.fail(CodeTaken, at, fmt.Sprintf("%s %q is already defined at %s", what, name, before), "choose another name for one of them")
	}
}

func (d *decoding) readDefaults(n *yaml.Node) {
	f, ok := d.mapping(n, `"defaults"`, []string{"index"}, "storage", "prune")
	if !ok || f.get("index") == nil {
		return
	}
	index, ok := d.mapping(f.get("index"), `"index"`, []string{"dialect", "maxValues", "maxValueBytes"})
	if ok {
		d.limits(index, &d.defaults)
	}
}

// limits reads what defaults and indexes have in common.
func (d *decoding) limits(f fields, out *indexDefaults) {
	if v := f.get("dialect"); v != nil {
		switch s, _ := d.choice(v, `"dialect"`, "literal", "kubectl"); s {
		case "literal":
			out.dialect = jsonpath.Literal
		case "kubectl":
			out.dialect = jsonpath.Kubectl
		}
	}
	if v := f.get("maxValues"); v != nil {
		if i, ok := d.number(v, `"maxValues"`, 1, mostValues); ok {
			out.maxValues = i
		}
	}
	if v := f.get("maxValueBytes"); v != nil {
		if i, ok := d.number(v, `"maxValueBytes"`, 1, mostValueBytes); ok {
			out.maxValueBytes = i
		}
	}
}

func (d *decoding) resource(n *yaml.Node) {
	f, ok := d.mapping(n, "a resource", []string{"name", "match", "indexes", "optional"}, "storage", "prune", "namespaces", "selectors")
	if !ok {
		return
	}
	r := &Resource{Config: d.config, file: d.file}
	if v, ok := d.required(f, "the resource", "name", "add name: ..., a name of your choice"); ok {
		if r.Name, ok = d.name(v, "the name of a resource"); ok {
			d.claim(d.names, "resource", r.Name, v)
		}
	}
	if v, ok := d.required(f, "the resource", "match", "add match: {group: ..., version: ..., resource: ...}"); ok {
		d.match(v, r)
	}
	if v := f.get("optional"); v != nil {
		r.Optional = d.boolean(v, `"optional"`)
	}
	const hint = "add at least one index, such as {name: owner, path: .spec.owner}"
	if v, ok := d.required(f, "the resource", "indexes", hint); ok {
		items, _ := d.list(v, `"indexes"`, hint)
		names := map[string]string{}
		for _, item := range items {
			if index, ok := d.index(item, names); ok {
				r.Indexes = append(r.Indexes, index)
			}
		}
	}
	d.loader.config.Resources = append(d.loader.config.Resources, r)
}

func (d *decoding) match(n *yaml.Node, r *Resource) {
	f, ok := d.mapping(n, `"match"`, []string{"group", "version", "resource", "kind"}, "versions")
	if !ok {
		return
	}
	const groupHint = `write group: example.com, or group: "" for the core group`
	if v, ok := d.required(f, "the match", "group", groupHint); ok {
		// Only here does empty text mean something.
		if v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" || v.Value != "" {
			r.Match.Group = d.matchText(v, `"group"`, groupHint)
		}
		r.matchAt.group = d.file.placeOf(v)
	}
	if v := f.get("version"); v != nil {
		r.Match.Version = d.matchText(v, `"version"`, "write a version such as v1, or leave it out for the one that the server prefers")
		r.matchAt.version = d.file.placeOf(v)
	}
	switch names := f.present("resource", "kind"); len(names) {
	case 0:
		if f.excuse("resource", "kind") {
			return
		}
		d.fail(CodeRequired, d.file.placeOf(n), `the match has neither "resource" nor "kind"`, "add resource: with the plural name, or kind:")
	case 2:
		d.failAt(CodeContradict, f.keys["kind"], `"resource" and "kind" do not go together`, "keep resource, which is exact")
	default:
		v := f.get(names[0])
		r.matchAt.name = d.file.placeOf(v)
		if names[0] == "kind" {
			r.Match.Kind = d.matchText(v, `"kind"`, "write a kind such as Certificate")
		} else {
			r.Match.Resource = d.matchText(v, `"resource"`, "write the plural name, such as certificates")
		}
	}
}

func (d *decoding) matchText(n *yaml.Node, what, hint string) string {
	s, ok := d.text(n, what, hint)
	if ok && strings.ContainsAny(s, "*?") {
		d.failAt(CodeNotSupported, n, "wildcards are not supported in this version", "name one group and one resource; write a resource for each type")
	} else if ok && !nameForm.MatchString(s) {
		d.failAt(CodeName, n, fmt.Sprintf("%s cannot be %q", what, s), hint)
	}
	return s
}
