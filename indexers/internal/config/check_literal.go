package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// checkLiteral reports a comparison with the same result for all possible values.
func (k *checker) checkLiteral(c jsonpath.Test, ends []cursor) {
	message, hint := "", ""
	for _, e := range ends {
		if message, hint = e.constantResult(c); message == "" {
			return
		}
	}
	if message == "" {
		return
	}
	result := "the comparison never holds"
	if c.Op == "!=" {
		result = "the comparison holds for every value"
	}
	k.fail(CodeLiteral, k.origin.Position(k.file, 0, c.Offset, c.End), message+": "+result, hint)
}

// constantResult explains why a comparison has the same result for all non-null values at the cursor, with a
// hint; "" if it has not.
func (c cursor) constantResult(comparison jsonpath.Test) (message, hint string) {
	actual, written := fmt.Sprintf("%s is %s", c.name(), c.kind()), literalText(comparison.Literal)
	equality := comparison.Op == "==" || comparison.Op == "!="
	switch kinds := c.literalKinds(); {
	case comparison.Literal == nil || c.isOpen():
	case c.isList():
		return actual, fmt.Sprintf("ask for its elements, as in @%s[?(@ %s %s)]", c.path, comparison.Op, written)
	case c.isMap():
		return actual, "compare one of its fields"
	case !slices.Contains(kinds, literalKind(comparison.Literal)):
		return fmt.Sprintf("%s, and %s is %s", actual, written, kindNames[literalKind(comparison.Literal)]),
			wrongKindHint(comparison.Literal, kinds[0])
	case kinds[0] == jsonpath.KindBool && (comparison.Op == "<" || comparison.Op == ">"):
		return actual + ", which has no order", "compare it by == or !="
	case equality && c.scalarKind() == kindInteger && isFractional(comparison.Literal):
		return fmt.Sprintf("%s has no fraction, and %s has", c.name(), written),
			"compare it with an integer, or by < or >"
	case equality && len(c.schema.Enum) > 0:
		return c.explainEnum(written)
	}
	return "", ""
}

// explainEnum explains a comparison with a literal that is not an enum value.
func (c cursor) explainEnum(written string) (message, hint string) {
	values := make([]string, len(c.schema.Enum))
	for i, v := range c.schema.Enum {
		values[i] = literalText(v)
	}
	if slices.Contains(values, written) {
		return "", ""
	}
	hint = "its values are " + strings.Join(values, ", ")
	if suggestion := NearestSpelling(written, values); suggestion != "" && written[0] == '"' {
		hint = fmt.Sprintf("did you mean %s?", suggestion)
	}
	return fmt.Sprintf("%s is never %s", c.name(), written), hint
}

// literalKinds returns the kinds of literals that values at the cursor can be compared with.
func (c cursor) literalKinds() []jsonpath.Kind {
	switch c.scalarKind() {
	case kindInteger, kindNumber:
		return []jsonpath.Kind{jsonpath.KindNumber}
	case kindBoolean:
		return []jsonpath.Kind{jsonpath.KindBool}
	case kindEither:
		return []jsonpath.Kind{jsonpath.KindNumber, jsonpath.KindString}
	}
	return []jsonpath.Kind{jsonpath.KindString}
}

var kindNames = map[jsonpath.Kind]string{
	jsonpath.KindNumber: "a number", jsonpath.KindBool: "a boolean", jsonpath.KindString: "text",
}

func literalKind(v any) jsonpath.Kind {
	switch v.(type) {
	case bool:
		return jsonpath.KindBool
	case string:
		return jsonpath.KindString
	}
	return jsonpath.KindNumber
}

// literalText formats a value as in a condition.
func literalText(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // literals and enum values can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

func wrongKindHint(literal any, expected jsonpath.Kind) string {
	text, quoted := literal.(string)
	var read any
	switch {
	case !quoted && expected == jsonpath.KindString:
		return fmt.Sprintf("write %q, in quotes", literalText(literal))
	case quoted && json.Unmarshal([]byte(text), &read) == nil && read != nil && literalKind(read) == expected:
		return fmt.Sprintf("write %s, without quotes", text)
	}
	return "compare it with " + kindNames[expected]
}

func isFractional(v any) bool {
	f, ok := v.(float64)
	return ok && f != math.Trunc(f)
}
