package config

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// keeping reads how objects are kept, which defaults and resources have in common.
func (d *decoding) keeping(f fieldMap, storage *Storage, prune *Prune, dialect jsonpath.Dialect) {
	if v := f.get("storage"); v != nil {
		d.storage(v, storage)
	}
	if v := f.get("prune"); v != nil {
		d.prune(v, prune, dialect)
	}
}

func (d *decoding) storage(n *yaml.Node, out *Storage) {
	f, ok := form[storageForm](d, n, `"storage"`)
	if !ok {
		return
	}
	words := wordsOf[storageForm]("mode")
	if v := f.get("mode"); v != nil {
		out.Mode, _ = d.choice(v, `"mode"`, words...)
	}
}

// prune reads what is cut out. A field that is there replaces the default.
func (d *decoding) prune(n *yaml.Node, out *Prune, dialect jsonpath.Dialect) {
	f, ok := form[pruneForm](d, n, `"prune"`)
	if !ok {
		return
	}
	if v := f.get("presets"); v != nil {
		out.Presets = nil
		items, _ := d.listOf(v, `"presets"`)
		for _, item := range items {
			if s, ok := d.choice(item, "a preset", wordsOf[pruneForm]("presets")...); ok {
				out.Presets = append(out.Presets, s)
			}
		}
	}
	if v := f.get("remove"); v != nil {
		out.Remove = nil
		items, _ := d.listOf(v, `"remove"`)
		for _, item := range items {
			if p := d.removal(item, dialect); p != nil {
				out.Remove = append(out.Remove, p)
			}
		}
	}
	if v := f.get("removeAnnotations"); v != nil {
		out.RemoveAnnotations = nil
		items, _ := d.listOf(v, `"removeAnnotations"`)
		for _, item := range items {
			if s, ok := d.text(item, "an annotation", "write the whole name, such as example.io/blob"); ok && d.qualified(item, s, "annotation") && d.removable(item, jsonpath.FromSegments("metadata", "annotations", s)) {
				out.RemoveAnnotations = append(out.RemoveAnnotations, s)
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
			d.failAt(CodeContradict, n, p.String()+" cannot be removed", "objects could not be told apart, selected or followed without it")
			return false
		}
	}
	return true
}

// removal reads a path to what is cut out.
func (d *decoding) removal(n *yaml.Node, dialect jsonpath.Dialect) *jsonpath.Path {
	p, at := d.path(n, "a path to remove", dialect)
	if p == nil {
		return nil
	}
	if !d.removable(at.Node, p) {
		return nil
	}
	steps := p.Steps()
	for i, step := range steps {
		kind := step.Selectors[0].Kind
		plain := !step.Recursive && len(step.Selectors) == 1 && (kind == jsonpath.SelectName || kind == jsonpath.SelectElements && i < len(steps)-1)
		if !plain {
			d.fail(CodeContradict, at.Place(d.file, i, step.Offset, step.End), "only names and [*] can lead to what is removed, and a name has to be last", "name the fields on the way, so that nothing goes by mistake")
			return nil
		}
	}
	return p
}

// listOf reads a list that may be empty, which replaces a default by nothing.
func (d *decoding) listOf(n *yaml.Node, what string) ([]*yaml.Node, bool) {
	if !d.want(n, yaml.SequenceNode, what, "a list", "write it between [ and ]") {
		return nil, false
	}
	return n.Content, true
}

func (d *decoding) namespaces(n *yaml.Node, r *Resource) {
	f, ok := form[namespacesForm](d, n, `"namespaces"`)
	if !ok {
		return
	}
	for _, side := range []struct {
		name string
		out  *[]string
	}{{"include", &r.Namespaces.Include}, {"exclude", &r.Namespaces.Exclude}} {
		v := f.get(side.name)
		if v == nil {
			continue
		}
		items, _ := d.list(v, fmt.Sprintf("%q", side.name), "name at least one namespace, such as prod or team-*, or remove it")
		for _, item := range items {
			s, ok := patterned[namespacesForm](d, side.name, item, "a namespace")
			if ok && side.name == "exclude" && strings.Trim(s, "*") == "" {
				d.failAt(CodeContradict, item, fmt.Sprintf("%q excludes every namespace, so that there is nothing left", s), "name those that are left out, or those that are meant by include")
			} else if ok {
				*side.out = append(*side.out, s)
			}
		}
	}
	if len(f.present("include", "exclude")) == 0 && !f.excuse("include", "exclude") {
		d.failAt(CodeEmpty, n, `"namespaces" is empty`, "add include or exclude, or remove it")
	}
}

func (d *decoding) selectors(n *yaml.Node, r *Resource) {
	f, ok := form[selectorsForm](d, n, `"selectors"`)
	if !ok {
		return
	}
	if v := f.get("labels"); v != nil {
		r.Selectors.Labels, r.LabelSelector = selector(d, v, `"labels"`, "write a selector such as app=web,tier!=test", func(s string) (labels.Selector, error) {
			return labels.Parse(s)
		})
	}
	if v := f.get("fields"); v != nil {
		r.At.Fields = d.file.PlaceOf(v)
		r.Selectors.Fields, r.FieldSelector = selector(d, v, `"fields"`, "write a selector such as metadata.name=web", fields.ParseSelector)
	}
}

// selector reads a selector; an empty one selects everything.
func selector[S any](d *decoding, n *yaml.Node, what, hint string, parse func(string) (S, error)) (string, S) {
	var none S
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value == "" {
		return "", none
	}
	s, ok := d.text(n, what, hint)
	if !ok {
		return "", none
	}
	parsed, err := parse(s)
	if err != nil {
		d.failAt(CodeSelector, n, "this is not a selector: "+err.Error(), hint)
		return "", none
	}
	return s, parsed
}
