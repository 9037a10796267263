package config

import (
	"cmp"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

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

// with returns the limits with the fields that are there.
func (l limits) with(dialect textField, maxValues, maxValueBytes numberField) limits {
	switch dialect.value {
	case "literal":
		l.dialect = jsonpath.Literal
	case "kubectl":
		l.dialect = jsonpath.Kubectl
	}
	if maxValues.value > 0 {
		l.maxValues = maxValues.value
	}
	if maxValueBytes.value > 0 {
		l.maxValueBytes = maxValueBytes.value
	}
	return l
}

// document reads one IndexConfig.
func (d *decoding) document(n *yaml.Node) {
	var f configForm
	if d.foreign(n) || !d.form(&f, n, "an "+Kind) || !d.ours(&f) {
		return
	}
	if m := &f.Metadata; m.node != nil && d.form(m, m.node, `"metadata"`) && m.Name.value != "" {
		d.config = m.Name.value
		d.claim(d.configs, Kind, m.Name)
	}
	if f.Spec.node == nil || !d.form(&f.Spec, f.Spec.node, `"spec"`) {
		return
	}
	base := limits{maxValues: DefaultMaxValues, maxValueBytes: DefaultMaxValueBytes}
	index := f.Spec.Defaults.Index
	d.defaults = defaults{limits: base.with(index.Dialect, index.MaxValues, index.MaxValueBytes)}
	d.keeping(&f.Spec.Defaults.Storage, &f.Spec.Defaults.Prune, &d.defaults.storage, &d.defaults.prune)
	for i := range f.Spec.Resources.items {
		d.resource(&f.Spec.Resources.items[i])
	}
}

// foreign reports a manifest of another kind, whose fields would all be unknown.
func (d *decoding) foreign(n *yaml.Node) bool {
	values := map[string]*yaml.Node{}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			values[n.Content[i].Value] = n.Content[i+1]
		}
	}
	version, kind := values["apiVersion"], values["kind"]
	if version == nil || kind == nil || version.Value == "" || kind.Value == "" ||
		Nearest(kind.Value, []string{Kind}) != "" {
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
	d.failAt(CodeNotOurs, kind, fmt.Sprintf("this is a %s of %s, not an %s", kind.Value,
		version.Value, Kind), hint)
	return true
}

// ours checks apiVersion and kind. The fields of another version may mean something else, so they are not
// read.
func (d *decoding) ours(f *configForm) bool {
	good := true
	for _, c := range []struct {
		field      textField
		name, want string
	}{{f.APIVersion, "apiVersion", APIVersion}, {f.Kind, "kind", Kind}} {
		if c.field.value != "" && c.field.value != c.want {
			hint := fmt.Sprintf("write %s: %s", c.name, c.want)
			d.failAt(CodeNotOurs, c.field.node, fmt.Sprintf("%s %q is not known", c.name,
				c.field.value), hint)
			good = false
		}
	}
	return good
}

// read checks a map of any names to texts. Their values are not used.
func (*textsForm) read(d *decoding, n *yaml.Node, at spot) bool {
	if !d.want(n, yaml.MappingNode, at.what, "a map of texts", "write name: value") {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if value := n.Content[i+1]; value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" {
			d.wrong(value, "a value of "+at.what, "text", "put quotes around it")
		}
	}
	return true
}

// claim records a name that has to be unique.
func (d *decoding) claim(names map[string]string, what string, name textField) {
	if name.value == "" {
		return
	}
	at := d.file.PlaceOf(name.node)
	if before, taken := claim(names, name.value, d.file, at); taken {
		message := fmt.Sprintf("%s %q is already defined at %s", what, name.value, before)
		d.fail(CodeTaken, at, message, "choose another name for one of them")
	}
}

func (d *decoding) resource(f *resourceForm) {
	r := &Resource{
		Config: d.config, Name: f.Name.value, File: d.file,
		Optional: f.Optional.value, Storage: d.defaults.storage, Prune: d.defaults.prune,
	}
	d.claim(d.names, "resource", f.Name)
	d.match(&f.Match, r)
	d.keeping(&f.Storage, &f.Prune, &r.Storage, &r.Prune)
	d.namespaces(&f.Namespaces, r)
	d.selectors(&f.Selectors, r)
	names := map[string]string{}
	for i := range f.Indexes.items {
		index := d.index(&f.Indexes.items[i], names)
		r.Indexes = append(r.Indexes, index)
		d.keptByIndex(r, index)
		d.metadataOnly(r, index)
	}
	names = map[string]string{}
	for i := range f.References.items {
		if reference, ok := d.reference(&f.References.items[i], names); ok {
			r.References = append(r.References, reference)
			d.keptByIndex(r, reference.Index)
			d.metadataOnly(r, reference.Index)
		}
	}
	d.resources = append(d.resources, r)
}

// match compiles which resource is meant.
func (d *decoding) match(f *matchForm, r *Resource) {
	r.Match = Match{
		Group: f.Group.value, Version: f.Version.value, Versions: f.Versions.value,
		Resource: f.Resource.value, Kind: f.Kind.value,
	}
	for at, n := range map[*Place]*yaml.Node{
		&r.At.Group: f.Group.node, &r.At.Version: f.Version.node, &r.At.Name: cmp.Or(f.Resource.node,
			f.Kind.node),
	} {
		if n != nil {
			*at = d.file.PlaceOf(n)
		}
	}
}

// keeping compiles how objects are kept. A field that is there replaces the default.
func (d *decoding) keeping(storage *storageForm, prune *pruneForm, s *Storage, p *Prune) {
	if storage.Mode.node != nil {
		s.Mode = storage.Mode.value
	}
	if prune.Presets.node != nil {
		p.Presets = textsOf(prune.Presets)
	}
	if prune.Remove.node != nil {
		p.Remove = nil
		for _, item := range prune.Remove.items {
			if path := d.removal(item.node); path != nil {
				p.Remove = append(p.Remove, path)
			}
		}
	}
	if prune.RemoveAnnotations.node != nil {
		p.RemoveAnnotations = nil
		for _, item := range prune.RemoveAnnotations.items {
			path := jsonpath.FromSegments("metadata", "annotations", item.value)
			if d.qualified(item.node, item.value, "annotation") && d.removable(item.node, path) {
				p.RemoveAnnotations = append(p.RemoveAnnotations, item.value)
			}
		}
	}
}

// identity are the paths that tell objects apart, and what a cache needs.
var identity = [][]string{
	nil, {"apiVersion"}, {"kind"}, {"metadata"}, {"metadata", "name"}, {"metadata", "namespace"},
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "labels"},
	{"metadata", "annotations", metav1.InitialEventsAnnotationKey},
}

// removable reports what cannot be cut out.
func (d *decoding) removable(n *yaml.Node, p *jsonpath.Path) bool {
	for _, keys := range identity {
		if p.String() == jsonpath.FromSegments(keys...).String() {
			hint := "objects could not be told apart, selected or followed without it"
			d.failAt(CodeContradict, n, p.String()+" cannot be removed", hint)
			return false
		}
	}
	return true
}

// removal compiles a path to what is cut out.
func (d *decoding) removal(n *yaml.Node) *jsonpath.Path {
	p, at := paths{decoding: d, dialect: d.defaults.dialect}.path(n, "a path to remove")
	if p == nil || !d.removable(n, p) {
		return nil
	}
	steps := p.Steps()
	for i, step := range steps {
		kind := step.Selectors[0].Kind
		named := kind == jsonpath.SelectName || kind == jsonpath.SelectElements && i < len(steps)-1
		if step.Recursive || len(step.Selectors) != 1 || !named {
			d.fail(CodeContradict, at.Place(d.file, i, step.Offset, step.End),
				"only names and [*] can lead to what is removed, and a name has to be last",
				"name the fields on the way, so that nothing goes by mistake")
			return nil
		}
	}
	return p
}

func (d *decoding) namespaces(f *namespacesForm, r *Resource) {
	r.Namespaces.Include = textsOf(f.Include)
	for _, item := range f.Exclude.items {
		if strings.Trim(item.value, "*") == "" {
			d.failAt(CodeContradict, item.node,
				fmt.Sprintf("%q excludes every namespace, so that there is nothing left", item.value),
				"name those that are left out, or those that are meant by include")
			continue
		}
		r.Namespaces.Exclude = append(r.Namespaces.Exclude, item.value)
	}
}

func (d *decoding) selectors(f *selectorsForm, r *Resource) {
	r.Selectors.Labels, r.LabelSelector = selector(d, f.Labels, "labels",
		func(s string) (labels.Selector, error) {
			return labels.Parse(s)
		})
	if f.Fields.node != nil {
		r.At.Fields = d.file.PlaceOf(f.Fields.node)
	}
	r.Selectors.Fields, r.FieldSelector = selector(d, f.Fields, "fields", fields.ParseSelector)
}

// selector parses a selector; an empty one selects everything.
func selector[S any](d *decoding, f textField, field string,
	parse func(string) (S, error)) (_ string, none S) {
	if f.value == "" {
		return "", none
	}
	parsed, err := parse(f.value)
	if err != nil {
		hint := tagOf[selectorsForm](field).Get("hint")
		d.failAt(CodeSelector, f.node, "this is not a selector: "+err.Error(), hint)
		return "", none
	}
	return f.value, parsed
}
