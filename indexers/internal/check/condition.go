package indexers

import (
	"slices"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// CheckCondition compares a condition or a path of a query with the schema that a version of a type has, as
// [Config.Check] does for those of a config: fields that do not exist, and comparisons that no value fulfils. A query
// may be meant for objects that are older than the schema, so that all of it is advice, whatever the codes. Columns are
// those of the text. A text that is neither a condition nor a path, and what has no schema, gives nothing.
func CheckCondition(text string, d *crd.Definition, version string) []Diagnostic {
	v, ok := d.Version(version)
	if !ok || v.Schema == nil {
		return nil
	}
	var found []Diagnostic
	k := checking{
		file: &file{lines: []string{text}, ascii: []bool{false}},
		name: typeName(d, v),
		at:   origin{node: &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: 1, Column: 1}, text: true},
		report: func(d Diagnostic) {
			if d.Code != CodeOpenField && !slices.Contains(found, d) {
				found = append(found, d)
			}
		},
	}
	top := []cursor{{schema: withMetadata(v.Schema)}}
	if filter, err := jsonpath.CompileFilter(text); err == nil {
		k.condition(filter, top)
	} else if path, err := jsonpath.Compile(text); err == nil {
		k.walk(path.Steps(), top)
	}
	return found
}

// condition checks the paths in a condition, and the literals that they are compared with.
func (k *checking) condition(filter *jsonpath.Filter, of []cursor) {
	for _, steps := range filter.Operands() {
		k.walk(steps, of)
	}
	for _, c := range filter.Comparisons() {
		k.literal(c, k.walk(c.Path, of)) // what is wrong with the path is reported once
	}
}
