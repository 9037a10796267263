package config

import (
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// CheckCondition checks a condition or a path of a query; see indexers.CheckCondition.
func CheckCondition(text string, d *crd.Definition, version string) []Finding {
	k, top, found := newQueryChecker(text, d, version)
	if k == nil {
		return nil
	}
	if filter, err := jsonpath.CompileFilter(text); err == nil {
		k.checkCondition(filter, top)
	} else if path, err := jsonpath.Compile(text); err == nil {
		k.walk(path.Steps(), top)
	}
	return *found
}

// CheckColumn checks the path of a column; see indexers.CheckColumn.
func CheckColumn(text string, d *crd.Definition, version string) []Finding {
	k, top, found := newQueryChecker(text, d, version)
	if k == nil {
		return nil
	}
	if path, err := jsonpath.Compile(text); err == nil {
		k.checkIndexable(k.walk(path.Steps(), top), "only text, numbers and booleans are values")
	}
	return *found
}

// ColumnType returns the type of the values at a path; see indexers.ColumnType.
func ColumnType(text string, d *crd.Definition, version string) (typ string) {
	k, top, _ := newQueryChecker(text, d, version)
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

// newQueryChecker returns a checker for an expression of a query; nil without a schema.
func newQueryChecker(text string, d *crd.Definition, version string) (*checker, []cursor, *[]Finding) {
	v, ok := d.Version(version)
	if !ok || v.Schema == nil {
		return nil, nil, nil
	}
	var found []Finding
	k := &checker{
		file:   NewLine(text),
		name:   typeName(d, v),
		origin: OriginOfText(text),
		report: func(f Finding) {
			if f.Code != CodeOpenField && !slices.Contains(found, f) {
				found = append(found, f)
			}
		},
	}
	return k, []cursor{{schema: withMetadata(v.Schema)}}, &found
}

// checkCondition checks the paths in a condition and the literals compared with them.
func (k *checker) checkCondition(filter *jsonpath.Filter, cursors []cursor) {
	for _, test := range filter.Tests() {
		switch ends := k.walk(test.Path, cursors); {
		case test.Op == "":
			k.checkExistence(test.Path, ends)
		case test.HasLiteral:
			k.checkLiteral(test, ends)
		}
	}
}

// checkExistence reports an existence test of a boolean, which is true for false.
func (k *checker) checkExistence(steps []jsonpath.Step, ends []cursor) {
	isOther := func(e cursor) bool { return e.scalarKind() != kindBoolean }
	if len(steps) == 0 || len(ends) == 0 || slices.ContainsFunc(ends, isOther) {
		return
	}
	from, to := steps[0].Offset, steps[len(steps)-1].End
	k.fail(CodeExistence, k.origin.Position(k.file, 0, from, to),
		fmt.Sprintf("%s is a boolean, and the condition tests whether it exists, which is also true for false",
			ends[0].name()), fmt.Sprintf("write @%s == true", k.origin.Node.Value[from:to]))
}
