package cel

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/expression"
)

// differenceFinder reports the uses of values that the API server reads differently, because it has the
// schema. JSON writes the number 1.0 as 1, which is an integer without the schema: 1/2 would be 0, and
// 1 + 0.5 an error. Lists that are sets or maps are equal in any order, and + merges them.
type differenceFinder struct {
	text     string
	ast      *ast.AST
	problems []expression.Problem
}

// sources are the schemas that a value can have. It is empty for a value that does not come from the object.
type sources []*crd.Schema

type schemaScope map[string]sources

// schemaDifferences returns the problems of an expression that has another result with the schema.
func schemaDifferences(text string, a *ast.AST, root *crd.Schema) []expression.Problem {
	f := &differenceFinder{text: text, ast: a}
	f.sourcesOf(a.Expr(), schemaScope{self: {root}})
	return f.problems
}

// isNumber and hasNumbers report whether a value is a number, or a list or map of numbers.
func isNumber(s *crd.Schema) bool { return s.Type == "number" }

func hasNumbers(s *crd.Schema) bool {
	return s != nil && (isNumber(s) || hasNumbers(s.Items) || hasNumbers(s.AdditionalProperties))
}

// hasSetOrMap reports whether a value is a list that is a set or a map, or contains one.
func hasSetOrMap(s *crd.Schema) bool {
	return s != nil && (s.ListType == "set" || s.ListType == "map" || hasSetOrMap(s.Items) ||
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
	if s.Items != nil {
		return s.Items
	}
	return s.AdditionalProperties
}

func (s sources) field(name string) sources {
	return s.children(func(source *crd.Schema) *crd.Schema {
		if property := source.Properties[name]; property != nil {
			return property
		}
		return source.AdditionalProperties
	})
}

// sourcesOf returns the schemas of the values of an expression, and reports its problems.
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
		operators.LogicalNot, operators.NotStrictlyFalse, "double", "int", "size", "hasValue"}
	choosingFunctions = []string{operators.Conditional, "or", "orValue", "value", "optional.of",
		"optional.ofNonZeroValue"}
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
	for _, operand := range operands {
		found := f.sourcesOf(operand, variables)
		isList := slices.ContainsFunc(found, func(s *crd.Schema) bool { return !isNumber(s) })
		switch {
		case slices.Contains(mergingFunctions, name) && slices.ContainsFunc(found, hasSetOrMap):
			f.report(operand,
				"the list is a set or a map in the schema, whose order does not count in a validation rule",
				"compare or join its elements, as with sets.equivalent(…)")
		case chooses || name == operators.Add && isList:
			out = append(out, found...)
		case !isSafe && slices.ContainsFunc(found, hasNumbers):
			f.report(operand, "the field is a number, which is an integer in objects without a fraction",
				map[bool]string{false: "write double(…) around it",
					true: "convert the elements, as in .map(x, double(x))"}[isList])
		}
	}
	return out
}

func (f *differenceFinder) report(e ast.Expr, message, hint string) {
	for e.Kind() == ast.SelectKind { // the start of the path
		e = e.AsSelect().Operand()
	}
	offset := offsetAt(f.text, f.ast.SourceInfo().GetStartLocation(e.ID()))
	p := expression.Problem{Offset: offset, End: endOfName(f.text, offset), Message: message, Hint: hint}
	if !slices.Contains(f.problems, p) {
		f.problems = append(f.problems, p)
	}
}
