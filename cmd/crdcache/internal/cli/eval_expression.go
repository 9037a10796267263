package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

type expression interface {
	// find calls yield for each value in an object until it returns false.
	find(object map[string]any, yield func(v any) bool)
	// explainMissing explains each path without a value in an object.
	explainMissing(object map[string]any) []string
	Warnings() []jsonpath.Diagnostic
}

// compile parses a path, or otherwise a condition. An expression that is both, such as @.spec.paused, is a
// path, which prints the value.
func compile(expr string) (expression, error) {
	path, err := jsonpath.Compile(expr)
	if err == nil {
		return pathExpression{path}, nil
	}
	filter, filterErr := jsonpath.CompileFilter(expr)
	if filterErr == nil {
		return conditionExpression{filter}, nil
	}
	noun := "path"
	var syntaxErr *jsonpath.Error
	if errors.As(err, &syntaxErr) && isOperatorAt(expr, syntaxErr.Offset) {
		noun, err = "condition", filterErr
	}
	if errors.As(err, &syntaxErr) {
		return nil, session.UsageLines(fmt.Sprintf("invalid %s: %s\n%s", noun, syntaxErr.Text(), syntaxErr.Caret()))
	}
	return nil, session.Usagef("invalid %s: %v", noun, err)
}

// isOperatorAt reports whether the parser of paths failed at an operator. Then the expression is probably a
// condition.
func isOperatorAt(expr string, offset int) bool {
	return offset < len(expr) && strings.IndexByte("=!<>&|(", expr[offset]) >= 0
}

type pathExpression struct{ *jsonpath.Path }

func (p pathExpression) find(object map[string]any, yield func(v any) bool) { p.Find(object, yield) }

func (p pathExpression) explainMissing(object map[string]any) []string {
	if _, found := p.First(object); found {
		return nil
	}
	return []string{"no value: " + explainPath(p.Path, object)}
}

// conditionExpression evaluates to true or false.
type conditionExpression struct{ *jsonpath.Filter }

func (c conditionExpression) find(object map[string]any, yield func(v any) bool) {
	yield(c.Match(object))
}

func (c conditionExpression) explainMissing(object map[string]any) []string {
	var explanations []string
	for _, test := range c.Tests() {
		steps := test.Path
		if len(steps) == 0 {
			continue // the object itself
		}
		text := c.Expr()[steps[0].Offset:steps[len(steps)-1].End]
		path, err := jsonpath.Compile(text)
		if err != nil {
			continue
		}
		if _, found := path.First(object); !found {
			explanations = append(explanations, fmt.Sprintf("@%s has no value: %s", text, explainPath(path, object)))
		}
	}
	return explanations
}

// maxKeys bounds the keys listed in an explanation.
const maxKeys = 8

// explainPath describes where a path without a value ends in an object.
func explainPath(path *jsonpath.Path, object map[string]any) string {
	expr, steps := path.Expr(), path.Steps()
	reachedPath, values := "", []any{object}
	for i, step := range steps {
		nextValues := prefixValues(path, step.End, object)
		if len(nextValues) == 0 {
			return describeFailedStep(reachedPath, expr[step.Offset:step.End], steps[i], values)
		}
		reachedPath, values = strings.TrimLeft(expr[:step.End], "{$"), nextValues
	}
	return "the path has no value in this object"
}

// prefixValues evaluates the path up to an offset.
func prefixValues(path *jsonpath.Path, end int, object map[string]any) []any {
	expr := path.Expr()[:end]
	if strings.HasPrefix(strings.TrimSpace(expr), "{") {
		expr += "}"
	}
	prefix, err := jsonpath.Compile(expr)
	if err != nil {
		return nil
	}
	return prefix.Append(nil, object)
}

// describeFailedStep describes the values to which the failing step was applied.
func describeFailedStep(reachedPath, stepText string, step jsonpath.Step, values []any) string {
	location := "the object"
	if reachedPath != "" {
		location = reachedPath
	}
	if len(values) > 1 {
		return fmt.Sprintf("%s has %d values, and %s matches nothing in them; the first is %s",
			location, len(values), stepText, summarize(values[0]))
	}
	text := fmt.Sprintf("%s is %s; %s matches nothing there", location, summarize(values[0]), stepText)
	if hint := suggestFix(step, values[0]); hint != "" {
		text += "; " + hint
	}
	return text
}

// summarize describes a value in a few words.
func summarize(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		if len(v) == 0 {
			return "an empty map"
		}
		keys := slices.Sorted(maps.Keys(v))
		more := ""
		if len(keys) > maxKeys {
			more = fmt.Sprintf(" and %d more", len(keys)-maxKeys)
			keys = keys[:maxKeys]
		}
		return "a map with the keys " + strings.Join(keys, ", ") + more
	case []any:
		return "a list of " + formatCount(len(v), "element")
	case string:
		return "the string " + quoteShortened(v)
	default:
		return fmt.Sprintf("%T %v", v, v)
	}
}

// quoteShortened quotes a string and cuts long ones.
func quoteShortened(s string) string {
	const maxRunes = 40
	runes := []rune(s)
	more := ""
	if len(runes) > maxRunes {
		runes, more = runes[:maxRunes], print.Ellipsis()
	}
	quoted, err := json.Marshal(string(runes))
	if err != nil {
		return "?"
	}
	return string(quoted) + more
}

func suggestFix(step jsonpath.Step, value any) string {
	if len(step.Selectors) != 1 {
		return ""
	}
	selector := step.Selectors[0]
	switch v := value.(type) {
	case []any:
		if selector.Kind == jsonpath.SelectName {
			return "write [*] before it to select from each element"
		}
	case map[string]any:
		switch selector.Kind {
		case jsonpath.SelectElements:
			return "[*] selects the elements of lists; write .* for the values of a map"
		case jsonpath.SelectName:
			if similar := similarKey(selector.Name, v); similar != "" {
				return fmt.Sprintf("did you mean %s?", similar)
			}
		}
	}
	return ""
}

// similarKey returns a key that differs only in case, or starts with the name and a dot.
func similarKey(name string, object map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if strings.EqualFold(key, name) {
			return key
		}
		if strings.HasPrefix(key, name+".") {
			return fmt.Sprintf("[%q]", key) // kubectl would read the dots as separators
		}
	}
	return ""
}
