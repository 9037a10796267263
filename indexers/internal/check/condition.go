package check

import (
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// Condition compares a condition or a path with the schema of a version of a type; see
// indexers.CheckCondition.
func Condition(text string, d *crd.Definition, version string) []config.Finding {
	k, top, found := alone(text, d, version)
	if k == nil {
		return nil
	}
	if filter, err := jsonpath.CompileFilter(text); err == nil {
		k.condition(filter, top)
	} else if path, err := jsonpath.Compile(text); err == nil {
		k.walk(path.Steps(), top)
	}
	return *found
}

// Column compares a path whose values are to be sorted by, grouped or computed with; see
// indexers.CheckColumn.
func Column(text string, d *crd.Definition, version string) []config.Finding {
	k, top, found := alone(text, d, version)
	if k == nil {
		return nil
	}
	if path, err := jsonpath.Compile(text); err == nil {
		k.indexable(k.walk(path.Steps(), top), "only text, numbers and booleans are values")
	}
	return *found
}

// ColumnType returns the type of the values at a path; see indexers.ColumnType.
func ColumnType(text string, d *crd.Definition, version string) (typ string) {
	k, top, _ := alone(text, d, version)
	path, err := jsonpath.Compile(text)
	if k == nil || err != nil {
		return ""
	}
	for i, end := range k.walk(path.Steps(), top) {
		one := ""
		switch s := end.schema; {
		case s.IntOrString:
			one = "quantity"
		case s.Type == "string" && s.Format == "duration":
			one = "duration"
		}
		if one == "" || i > 0 && one != typ {
			return ""
		}
		typ = one
	}
	return typ
}

// alone prepares the comparison of a text that is in no config; nil where there is no schema.
func alone(text string, d *crd.Definition, version string) (*checking, []cursor, *[]config.Finding) {
	v, ok := d.Version(version)
	if !ok || v.Schema == nil {
		return nil, nil, nil
	}
	var found []config.Finding
	k := &checking{
		file: config.NewLine(text),
		name: typeName(d, v),
		at:   config.OfText(text),
		report: func(f config.Finding) {
			if f.Code != config.CodeOpenField && !slices.Contains(found, f) {
				found = append(found, f)
			}
		},
	}
	return k, []cursor{{schema: withMetadata(v.Schema)}}, &found
}

// condition checks the paths in a condition, and the literals that they are compared with.
func (k *checking) condition(filter *jsonpath.Filter, of []cursor) {
	for _, steps := range filter.Operands() {
		k.walk(steps, of)
	}
	for _, steps := range filter.Existences() {
		k.existence(steps, of)
	}
	for _, c := range filter.Comparisons() {
		k.literal(c, k.walk(c.Path, of)) // what is wrong with the path is reported once
	}
}

// existence reports a path to a boolean that is only asked whether it is there: false is there too.
func (k *checking) existence(steps []jsonpath.Step, of []cursor) {
	if len(steps) == 0 {
		return
	}
	ends := k.walk(steps, of)
	for _, e := range ends {
		if e.scalarKind() != kindBoolean {
			return
		}
	}
	if len(ends) == 0 {
		return
	}
	from, to := steps[0].Offset, steps[len(steps)-1].End
	k.fail(config.CodeExistence, k.at.Place(k.file, 0, from, to),
		fmt.Sprintf("%s is a boolean, and the condition asks whether it is there, which false is too",
			ends[0].name()), fmt.Sprintf("write @%s == true", k.at.Node.Value[from:to]))
}
