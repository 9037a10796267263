package check

import (
	"slices"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// Condition compares a condition or a path with the schema of a version of a type; see indexers.CheckCondition.
func Condition(text string, d *crd.Definition, version string) []config.Finding {
	v, ok := d.Version(version)
	if !ok || v.Schema == nil {
		return nil
	}
	var found []config.Finding
	k := checking{
		file: config.NewLine(text),
		name: typeName(d, v),
		at:   config.OfText(text),
		report: func(f config.Finding) {
			if f.Code != config.CodeOpenField && !slices.Contains(found, f) {
				found = append(found, f)
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
