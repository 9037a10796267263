package cel

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/crdcache/crdcache/discovery/crd"
)

// differenceFinder finds the uses of values that have another meaning with the schema. JSON writes the number
// 1.0 as 1, which is an integer without the schema: 1/2 would be 0, and 1 + 0.5 an error. Lists that are sets
// or maps are equal in any order, and + merges them.
type differenceFinder struct{ found bool }

// sources are the schemas that a value can have. It is empty for a value that does not come from the object.
type sources []*crd.Schema

type schemaScope map[string]sources

// dependsOn reports whether an expression can have another result with a schema than without.
func dependsOn(a *ast.AST, root *crd.Schema) bool {
	f := &differenceFinder{}
	f.sourcesOf(a.Expr(), schemaScope{self: {root}})
	return f.found
}

// anySchema is an unknown schema, of the value and of everything below it.
var anySchema = &crd.Schema{}

// isNumber and hasNumbers report whether a value is a number, or a list or map of numbers.
func isNumber(s *crd.Schema) bool { return s.Type == "number" }

func hasNumbers(s *crd.Schema) bool {
	return s != nil && (s == anySchema || isNumber(s) || hasNumbers(s.Items) ||
		hasNumbers(s.AdditionalProperties))
}

// isSetOrMap reports whether a value is a set or a map, and hasSetOrMap whether it contains one.
func isSetOrMap(s *crd.Schema) bool {
	return s == anySchema || s.ListType == "set" || s.ListType == "map"
}

func hasSetOrMap(s *crd.Schema) bool {
	return s != nil && (isSetOrMap(s) || hasSetOrMap(s.Items) ||
		hasSetOrMap(s.AdditionalProperties) ||
		slices.ContainsFunc(slices.Collect(maps.Values(s.Properties)), hasSetOrMap))
}

// children applies next to each source.
func (s sources) children(next func(*crd.Schema) *crd.Schema) (out sources) {
	for _, source := range s {
		if child := next(source); child != nil && !slices.Contains(out, child) {
			out = append(out, child)
		}
	}
	return out
}

func elementOf(s *crd.Schema) *crd.Schema {
	switch {
	case s == anySchema:
		return s
	case s.Items != nil:
		return s.Items
	}
	return s.AdditionalProperties
}

func (s sources) field(name string) sources {
	return s.children(func(source *crd.Schema) *crd.Schema {
		if property := source.Properties[name]; property != nil || source == anySchema {
			return cmp.Or(property, source)
		}
		return source.AdditionalProperties
	})
}

// sourcesOf returns the schemas of the values of an expression, and looks for differences in it.
func (f *differenceFinder) sourcesOf(e ast.Expr, variables schemaScope) (out sources) {
	switch e.Kind() {
	case ast.IdentKind:
		return variables[e.AsIdent()]
	case ast.SelectKind:
		operand := f.sourcesOf(e.AsSelect().Operand(), variables)
		if e.AsSelect().IsTestOnly() {
			return nil
		}
		return operand.field(e.AsSelect().FieldName())
	case ast.CallKind:
		return f.sourcesOfCall(e.AsCall(), variables)
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			for _, s := range f.sourcesOf(element, variables) {
				out = append(out, &crd.Schema{Type: "array", Items: s})
			}
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			for _, s := range f.sourcesOf(entry.AsMapEntry().Value(), variables) {
				out = append(out, &crd.Schema{Type: "object", AdditionalProperties: s})
			}
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		inner := maps.Clone(variables)
		elements := f.sourcesOf(c.IterRange(), variables).children(elementOf)
		inner[c.IterVar()] = elements
		if c.HasIterVar2() { // the first variable is an index or a key
			inner[c.IterVar()], inner[c.IterVar2()] = nil, elements
		}
		inner[c.AccuVar()] = f.sourcesOf(c.AccuInit(), variables)
		f.sourcesOf(c.LoopCondition(), inner)
		inner[c.AccuVar()] = append(inner[c.AccuVar()], f.sourcesOf(c.LoopStep(), inner)...)
		return f.sourcesOf(c.Result(), inner)
	}
	return out
}

// safeFunctions have the same results for a number that is an integer. The values of choosingFunctions are
// those of their operands.
var (
	safeFunctions = []string{operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals,
		operators.Greater, operators.GreaterEquals, operators.In, operators.LogicalAnd, operators.LogicalOr,
		operators.LogicalNot, operators.NotStrictlyFalse, "double", "int", "size", "hasValue",
		// of texts; they fail for each number
		"startsWith", "endsWith", "contains", "matches", "lowerAscii", "upperAscii", "trim", "join", "quantity",
		"isQuantity"}
	choosingFunctions  = []string{operators.Conditional, "or", "orValue", "value", "optional.of", "optional.ofNonZeroValue"}
	selectingFunctions = []string{operators.Index, operators.OptIndex, operators.OptSelect}
	mergingFunctions   = []string{operators.Add, operators.Equals, operators.NotEquals}
)

func (f *differenceFinder) sourcesOfCall(call ast.CallExpr, variables schemaScope) (out sources) {
	operands := call.Args()
	if call.IsMemberFunction() {
		operands = slices.Insert(slices.Clone(operands), 0, call.Target())
	}
	name := call.FunctionName()
	if slices.Contains(selectingFunctions, name) {
		container := f.sourcesOf(operands[0], variables)
		f.sourcesOf(operands[1], variables)
		if key := operands[1]; key.Kind() == ast.LiteralKind {
			if field, ok := key.AsLiteral().Value().(string); ok {
				return container.field(field)
			}
		}
		return container.children(elementOf)
	}
	chooses, isSafe := slices.Contains(choosingFunctions, name), slices.Contains(safeFunctions, name)
	// A list is never equal to a literal, and a text can only be added to a text.
	hasLiteral, isText, differs := false, false, hasSetOrMap
	if name == operators.Add {
		differs = isSetOrMap
	}
	for _, operand := range operands {
		if operand.Kind() == ast.LiteralKind {
			hasLiteral = true
			isText = isText || name == operators.Add && operand.AsLiteral().Type() == types.StringType
		}
	}
	for _, operand := range operands {
		found := f.sourcesOf(operand, variables)
		isList := slices.ContainsFunc(found, func(s *crd.Schema) bool { return !isNumber(s) })
		switch {
		case isText:
		case !hasLiteral && slices.Contains(mergingFunctions, name) && slices.ContainsFunc(found, differs):
			f.found = true
		case chooses || name == operators.Add && isList:
			out = append(out, found...)
		case !isSafe && slices.ContainsFunc(found, hasNumbers):
			f.found = true
		}
	}
	return out
}
