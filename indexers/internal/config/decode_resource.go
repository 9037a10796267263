package config

import (
	"fmt"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// defaults is spec.defaults.
type defaults struct {
	limits
	storage Storage
	prune   Prune
}

// limits is spec.defaults.index.
type limits struct {
	dialect       jsonpath.Dialect
	maxValues     int
	maxValueBytes int
}

// document reads one IndexConfig.
func (d *decoding) document(n *yaml.Node) {
	if d.foreign(n) {
		return
	}
	top, ok := form[configForm](d, n, "an "+Kind)
	if !ok || !d.ours(top) {
		return
	}
	d.metadata(top)
	d.defaults = defaults{limits: limits{maxValues: DefaultMaxValues, maxValueBytes: DefaultMaxValueBytes}}
	value := top.get("spec")
	if value == nil {
		return
	}
	spec, ok := form[specForm](d, value, `"spec"`)
	if !ok {
		return
	}
	if v := spec.get("defaults"); v != nil {
		d.readDefaults(v)
	}
	if v := spec.get("resources"); v != nil {
		items, _ := d.list(v, `"resources"`, tagOf[specForm]("resources").Get("hint"))
		for _, item := range items {
			d.resource(item)
		}
	}
}

// foreign reports a manifest of something else, of which all fields would be unknown.
func (d *decoding) foreign(n *yaml.Node) bool {
	values := map[string]*yaml.Node{}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			values[n.Content[i].Value] = n.Content[i+1]
		}
	}
	version, kind := values["apiVersion"], values["kind"]
	if version == nil || kind == nil || version.Value == "" || kind.Value == "" || kind.Value == Kind || Nearest(kind.Value, []string{Kind}) != "" {
		return false
	}
	group, _, _ := strings.Cut(APIVersion, "/")
	if strings.HasPrefix(version.Value, group) {
		return false
	}
	hint := "take it out of the file"
	if kind.Value == "ConfigMap" {
		hint = "give the file that it holds"
	}
	d.failAt(CodeNotOurs, kind, fmt.Sprintf("this is a %s of %s, not an %s", kind.Value, version.Value, Kind), hint)
	return true
}

// ours checks apiVersion and kind. Of another version, nothing else is read: its fields may mean
// something else.
func (d *decoding) ours(top fieldMap) bool {
	good := true
	for _, f := range []struct{ name, value string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		hint := tagOf[configForm](f.name).Get("hint")
		v := top.get(f.name)
		if v == nil {
			continue // the rest shows well enough what is meant
		}
		if s, ok := d.text(v, fmt.Sprintf("%q", f.name), hint); ok && s != f.value {
			d.failAt(CodeNotOurs, v, fmt.Sprintf("%s %q is not known", f.name, s), hint)
			good = false
		}
	}
	return good
}

func (d *decoding) metadata(top fieldMap) {
	v := top.get("metadata")
	if v == nil {
		return
	}
	meta, ok := form[metaForm](d, v, `"metadata"`)
	if !ok {
		return
	}
	for _, name := range []string{"labels", "annotations"} {
		d.texts(meta.get(name), strconv.Quote(name))
	}
	if v := meta.get("name"); v != nil {
		if name, ok := patterned[metaForm](d, "name", v, "the name"); ok {
			d.config = name
			d.claim(d.configs, Kind, name, v)
		}
	}
}

// texts checks a map of any names to texts. Their values are not used.
func (d *decoding) texts(n *yaml.Node, what string) {
	if n == nil || !d.want(n, yaml.MappingNode, what, "a map of texts", "write name: value") {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if value := n.Content[i+1]; value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" {
			d.wrong(value, "a value of "+what, "text", "put quotes around it")
		}
	}
}

// claim records a name that has to be unique.
func (d *decoding) claim(names map[string]string, what, name string, n *yaml.Node) {
	at := d.file.PlaceOf(n)
	if before, taken := claim(names, name, d.file, at); taken {
		d.fail(CodeTaken, at, fmt.Sprintf("%s %q is already defined at %s", what, name, before), "choose another name for one of them")
	}
}

func (d *decoding) readDefaults(n *yaml.Node) {
	f, ok := form[defaultsForm](d, n, `"defaults"`)
	if !ok {
		return
	}
	if v := f.get("index"); v != nil {
		if index, ok := form[limitsForm](d, v, `"index"`); ok {
			d.limits(index, &d.defaults.limits)
		}
	}
	d.keeping(f, &d.defaults.storage, &d.defaults.prune, d.defaults.dialect)
}

// limits reads what defaults and indexes have in common.
func (d *decoding) limits(f fieldMap, out *limits) {
	if v := f.get("dialect"); v != nil {
		switch s, _ := d.choice(v, `"dialect"`, wordsOf[limitsForm]("dialect")...); s {
		case "literal":
			out.dialect = jsonpath.Literal
		case "kubectl":
			out.dialect = jsonpath.Kubectl
		}
	}
	if v := f.get("maxValues"); v != nil {
		if i, ok := d.number(v, `"maxValues"`, boundsOf[limitsForm]("maxValues")); ok {
			out.maxValues = i
		}
	}
	if v := f.get("maxValueBytes"); v != nil {
		if i, ok := d.number(v, `"maxValueBytes"`, boundsOf[limitsForm]("maxValueBytes")); ok {
			out.maxValueBytes = i
		}
	}
}

func (d *decoding) resource(n *yaml.Node) {
	f, ok := form[resourceForm](d, n, "a resource")
	if !ok {
		return
	}
	r := &Resource{Config: d.config, File: d.file, Storage: d.defaults.storage, Prune: d.defaults.prune}
	if v := f.get("name"); v != nil {
		if r.Name, ok = patterned[resourceForm](d, "name", v, "the name of a resource"); ok {
			d.claim(d.names, "resource", r.Name, v)
		}
	}
	if v := f.get("match"); v != nil {
		d.match(v, r)
	}
	if v := f.get("optional"); v != nil {
		r.Optional = d.boolean(v, `"optional"`)
	}
	d.keeping(f, &r.Storage, &r.Prune, d.defaults.dialect)
	if v := f.get("namespaces"); v != nil {
		d.namespaces(v, r)
	}
	if v := f.get("selectors"); v != nil {
		d.selectors(v, r)
	}
	if v := f.get("indexes"); v != nil {
		items, _ := d.list(v, `"indexes"`, "add an index, such as {name: owner, path: .spec.owner}, or remove it")
		names := map[string]string{}
		for _, item := range items {
			if index, ok := d.index(item, names); ok {
				r.Indexes = append(r.Indexes, index)
				d.keptByIndex(r, index)
				d.metadataOnly(r, index)
			}
		}
	}
	d.references(f.get("references"), r)
	d.resources = append(d.resources, r)
}

// references reads what objects of the resource refer to.
func (d *decoding) references(n *yaml.Node, r *Resource) {
	if n == nil {
		return
	}
	items, _ := d.list(n, `"references"`, "add a reference, such as {name: owner, to: {group: example.com, kind: Team, name: .spec.team}}, or remove it")
	names := map[string]string{}
	for _, item := range items {
		if reference, ok := d.reference(item, names); ok {
			r.References = append(r.References, reference)
			d.keptByIndex(r, reference.Index)
			d.metadataOnly(r, reference.Index)
		}
	}
}
