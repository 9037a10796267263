package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// expression is what is evaluated: a path or a condition.
type expression interface {
	// find calls yield for each value that an object has, until it returns false.
	find(object map[string]any, yield func(v any) bool)
	// lacking explains each path that finds nothing in an object.
	lacking(object map[string]any) []string
	// Warnings tell of what may not be meant.
	Warnings() []jsonpath.Diagnostic
}

// compile reads a path, or else a condition. A condition that is a path as well, such as @.spec.paused, is read as the
// path, which says more.
func compile(expr string, dialect jsonpath.Dialect) (expression, error) {
	path, err := jsonpath.Compile(expr, jsonpath.WithDialect(dialect))
	if err == nil {
		return aPath{path}, nil
	}
	filter, filterErr := jsonpath.CompileFilter(expr, jsonpath.WithDialect(dialect))
	if filterErr == nil {
		return aCondition{filter}, nil
	}
	what := "path"
	var wrong *jsonpath.Error
	if errors.As(err, &wrong) && operatorAt(expr, wrong.Offset) {
		what, err = "condition", filterErr
	}
	if errors.As(err, &wrong) {
		return nil, exit.UsageLines(fmt.Sprintf("the %s is wrong: %s\n%s", what, wrong.Text(), wrong.Caret()))
	}
	return nil, exit.Usagef("the %s is wrong: %v", what, err)
}

// operatorAt reports whether an expression could not be read as a path because of an operator, so that a condition is
// meant.
func operatorAt(expr string, offset int) bool {
	return offset < len(expr) && strings.IndexByte("=!<>&|(", expr[offset]) >= 0
}

// aPath gives what it leads to.
type aPath struct{ *jsonpath.Path }

func (p aPath) find(object map[string]any, yield func(v any) bool) { p.Find(object, yield) }

func (p aPath) lacking(object map[string]any) []string {
	if _, found := p.First(object); found {
		return nil
	}
	return []string{"no value: " + explainPath(p.Path, object)}
}

// aCondition gives true or false.
type aCondition struct{ *jsonpath.Filter }

func (c aCondition) find(object map[string]any, yield func(v any) bool) { yield(c.Match(object)) }

func (c aCondition) lacking(object map[string]any) []string {
	var all []string
	for _, steps := range c.Operands() {
		if len(steps) == 0 {
			continue // the object itself
		}
		text := c.Expr()[steps[0].Offset:steps[len(steps)-1].End]
		path, err := jsonpath.Compile(text, jsonpath.WithDialect(c.Dialect()))
		if err != nil {
			continue
		}
		if _, found := path.First(object); !found {
			all = append(all, fmt.Sprintf("@%s has no value: %s", text, explainPath(path, object)))
		}
	}
	return all
}
