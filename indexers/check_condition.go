package indexers

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

// CheckCondition compares a condition or a path of a query with the schema of a version, like [Config.Check].
// It reports unknown fields, and comparisons that no value satisfies. All findings are advice, because
// objects can be older than the schema. Columns refer to text. The result is empty without a schema, and for
// a text that is neither a condition nor a path.
func CheckCondition(text string, d *crd.Definition, version string) []Diagnostic {
	return checkText(text, d, version, func(k *checker, roots []cursor) {
		if filter, err := jsonpath.CompileTest(text); err == nil {
			k.checkCondition(filter, roots)
		}
	})
}

// CheckCEL works like [CheckCondition] for a CEL expression on the schema. It needs module cel.
func CheckCEL(text string, d *crd.Definition, version string) []Diagnostic {
	return checkText(text, d, version, func(k *checker, roots []cursor) {
		if e, err := expression.Compile(text); err == nil {
			k.checkCEL(e, roots[0].schema, true)
		}
	})
}

type schemaExpression interface {
	// NeedsSchema reports whether a schema could change the results.
	NeedsSchema() bool
	// WithSchema returns the expression that reads objects with a schema, and problems if the schema does not
	// permit it. Then the expression is nil if the schema could change its results, otherwise the same one.
	WithSchema(schema *crd.Schema) (expression.Expression, []expression.Problem)
}

func (c *checker) checkCEL(e expression.Expression, root *crd.Schema, condition bool) {
	e, problems := e.(schemaExpression).WithSchema(root)
	for _, p := range problems {
		c.fail(codeCELSchema, c.origin.position(c.file, p.Offset, p.End), p.Message, p.Hint)
	}
	if len(problems) == 0 && condition && e.Result() != expression.Bool && e.Result() != expression.Any {
		c.fail(codeCELSchema, c.position(), notBoolean, notBooleanHint)
	}
}

// CheckColumn checks a path that a query sorts by, groups by or computes with against a version's schema. It
// reports unknown fields, and paths that end at a list or map. See [CheckCondition].
func CheckColumn(path string, d *crd.Definition, version string) []Diagnostic {
	return checkText(path, d, version, func(k *checker, roots []cursor) {
		if path, err := jsonpath.Compile(path); err == nil {
			k.checkIndexable(k.walk(path.Steps(), roots), "only text, numbers and booleans are values", manyValuesHints)
		}
	})
}

// ColumnType returns the type that the schema of a version gives to the values at a path: "Quantity",
// "Duration", or "" for others. A field of integers or text (x-kubernetes-int-or-string) holds quantities.
func ColumnType(path string, d *crd.Definition, version string) (typ string) {
	checkText(path, d, version, func(k *checker, roots []cursor) {
		path, err := jsonpath.Compile(path)
		if err != nil {
			return
		}
		types := map[string]bool{}
		for _, end := range k.walk(path.Steps(), roots) {
			switch s := end.schema; {
			case s.IntOrString:
				typ = sortkey.Quantity.String()
			case s.Type == "string" && s.Format == "duration":
				typ = sortkey.Duration.String()
			default:
				typ = ""
			}
			types[typ] = true
		}
		if len(types) > 1 {
			typ = ""
		}
	})
	return typ
}

// checkText runs a check of an expression of a query, unless the version has no schema. roots has the
// cursor of the object.
func checkText(text string, d *crd.Definition, version string,
	check func(k *checker, roots []cursor)) (findings []Diagnostic) {
	v, ok := d.Version(version)
	if !ok || v.Schema == nil {
		return nil
	}
	check(&checker{
		file:     &sourceFile{lines: []string{text}, ascii: []bool{false}},
		typeName: typeName(d, v),
		origin:   origin{node: &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: 1, Column: 1}},
		report: func(f Diagnostic) {
			if f.Code != codeOpenField && !slices.Contains(findings, f) {
				findings = append(findings, f)
			}
		},
	}, []cursor{{schema: ObjectSchema(v.Schema)}})
	return findings
}

// checkCondition checks the paths in a condition and the literals compared with them.
func (c *checker) checkCondition(filter *jsonpath.Filter, cursors []cursor) {
	for _, test := range filter.Tests() {
		switch ends := c.walk(test.Path, cursors); {
		case test.Op == "":
			c.checkExistence(test.Path, ends)
		case test.HasLiteral:
			c.checkLiteral(test, ends)
		}
	}
}

// checkExistence reports an existence test of a boolean: the test is also true if the boolean is false.
func (c *checker) checkExistence(steps []jsonpath.Step, ends []cursor) {
	isOther := func(e cursor) bool { return e.scalarKind() != kindBoolean }
	if len(steps) == 0 || len(ends) == 0 || slices.ContainsFunc(ends, isOther) {
		return
	}
	from, to := steps[0].Offset, steps[len(steps)-1].End
	c.fail(codeExistence, c.origin.position(c.file, from, to),
		fmt.Sprintf("%s is a boolean, and the condition tests whether it exists, which is also true for false",
			ends[0].name()), fmt.Sprintf("write @%s == true", c.origin.node.Value[from:to]))
}

// checkLiteral reports a comparison with the same result for all possible values.
func (c *checker) checkLiteral(comparison jsonpath.Test, ends []cursor) {
	message, hint := "", ""
	for _, e := range ends {
		if message, hint = e.constantResult(comparison); message == "" {
			return
		}
	}
	if message == "" {
		return
	}
	result := "the comparison never holds"
	if comparison.Op == "!=" {
		result = "the comparison holds for every value"
	}
	c.fail(codeLiteral, c.origin.position(c.file, comparison.Offset, comparison.End),
		message+": "+result, hint)
}

// constantResult explains why a comparison has the same result for all non-null values at the cursor. It
// returns an empty message if the result depends on the value.
func (c cursor) constantResult(comparison jsonpath.Test) (message, hint string) {
	actual, literal := fmt.Sprintf("%s is %s", c.name(), c.kind()), jsontext.Compact(comparison.Literal)
	equality := comparison.Op == "==" || comparison.Op == "!="
	switch kinds := c.literalKinds(); {
	case comparison.Literal == nil || c.isOpen():
	case c.isList():
		return actual, fmt.Sprintf("ask for its elements, as in @%s[?(@ %s %s)]", c.path, comparison.Op, literal)
	case c.isMap():
		return actual, "compare one of its fields"
	case !slices.Contains(kinds, literalKind(comparison.Literal)):
		return fmt.Sprintf("%s, and %s is %s", actual, literal, kindNames[literalKind(comparison.Literal)]),
			wrongKindHint(comparison.Literal, kinds[0])
	case kinds[0] == jsonpath.KindBool && (comparison.Op == "<" || comparison.Op == ">"):
		return actual + ", which has no order", "compare it by == or !="
	case equality && c.scalarKind() == kindInteger && isFractional(comparison.Literal):
		return fmt.Sprintf("%s has no fraction, and %s has", c.name(), literal),
			"compare it with an integer, or by < or >"
	case equality && len(c.schema.Enum) > 0:
		return c.explainEnum(literal)
	}
	return "", ""
}

// explainEnum explains a comparison with a literal that is not an enum value.
func (c cursor) explainEnum(literal string) (message, hint string) {
	values := naming.Texts(c.schema.Enum, jsontext.Compact)
	if slices.Contains(values, literal) {
		return "", ""
	}
	hint = "its values are " + strings.Join(values, ", ")
	if suggestion := nearestSpelling(literal, values); suggestion != "" && literal[0] == '"' {
		hint = fmt.Sprintf("did you mean %s?", suggestion)
	}
	return fmt.Sprintf("%s is never %s", c.name(), literal), hint
}

// literalKinds returns the kinds of literals that values at the cursor can be compared with.
func (c cursor) literalKinds() []jsonpath.Kind {
	switch c.scalarKind() {
	case kindInteger, kindNumber:
		return []jsonpath.Kind{jsonpath.KindNumber}
	case kindBoolean:
		return []jsonpath.Kind{jsonpath.KindBool}
	case kindIntOrString:
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

func wrongKindHint(literal any, expected jsonpath.Kind) string {
	text, quoted := literal.(string)
	var read any
	switch {
	case !quoted && expected == jsonpath.KindString:
		return fmt.Sprintf("write %q, in quotes", jsontext.Compact(literal))
	case quoted && json.Unmarshal([]byte(text), &read) == nil && read != nil && literalKind(read) == expected:
		return fmt.Sprintf("write %s, without quotes", text)
	}
	return "compare it with " + kindNames[expected]
}

func isFractional(v any) bool {
	f, ok := v.(float64)
	return ok && f != math.Trunc(f)
}
