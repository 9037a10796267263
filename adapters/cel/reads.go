package cel

import (
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// readCollector collects the paths that an expression reads, or more: also everything below a path that the
// expression uses as a value, and the parent of a field with a computed name.
type readCollector struct {
	text  string
	ast   *ast.AST
	reads []jsonpath.Read
}

func readsOf(text string, a *ast.AST) []jsonpath.Read {
	r := &readCollector{text: text, ast: a}
	r.walk(a.Expr(), scope{self: {isKnown: true}})
	return r.reads
}

// scope are the variables of an expression.
type scope map[string]valuePath

// valuePath is the path of a value. A value that is computed has no known path.
type valuePath struct {
	isKnown bool
	steps   []jsonpath.Step
}

func (v valuePath) appendSelector(s jsonpath.Selector) valuePath {
	return valuePath{true, append(slices.Clip(v.steps), jsonpath.Step{Selectors: []jsonpath.Selector{s}})}
}

func (r *readCollector) addRead(path valuePath, e ast.Expr) {
	for e.Kind() != ast.IdentKind { // the variable at the start of the path
		if e.Kind() == ast.SelectKind {
			e = e.AsSelect().Operand()
		} else {
			e = e.AsCall().Args()[0]
		}
	}
	start := offsetAt(r.text, r.ast.SourceInfo().GetStartLocation(e.ID()))
	end := start
	for end < len(r.text) && (r.text[end] == '.' || r.text[end] == '?' || endOfName(r.text, end) > end+1) {
		end = endOfName(r.text, end)
	}
	r.reads = append(r.reads,
		jsonpath.Read{Steps: path.steps, Whole: true, Offset: start, End: max(end, start+1)})
}

// walk records the paths that an expression reads.
func (r *readCollector) walk(e ast.Expr, variables scope) {
	if path := pathOf(e, variables); path.isKnown {
		if e.Kind() == ast.IdentKind && e.AsIdent() != self && len(path.steps) > 0 {
			path.steps = path.steps[:len(path.steps)-1] // the element is a key if the list is a map
		}
		r.addRead(path, e)
		return
	}
	if e.Kind() == ast.ComprehensionKind {
		r.walkComprehension(e.AsComprehension(), variables)
		return
	}
	for _, child := range ast.NavigateExpr(r.ast, e).Children() {
		r.walk(child, variables)
	}
}

func (r *readCollector) walkComprehension(c ast.ComprehensionExpr, outer scope) {
	r.walk(c.AccuInit(), outer)
	loopVariables := maps.Clone(outer)
	loopVariables[c.AccuVar()] = valuePath{}
	resultVariables := maps.Clone(loopVariables)
	list := pathOf(c.IterRange(), outer)
	if list.isKnown && !c.HasIterVar2() {
		loopVariables[c.IterVar()] = list.appendSelector(jsonpath.Selector{Kind: jsonpath.SelectElements})
	} else {
		r.walk(c.IterRange(), outer)
		loopVariables[c.IterVar()], loopVariables[c.IterVar2()] = valuePath{}, valuePath{}
	}
	readCount := len(r.reads)
	r.walk(c.LoopCondition(), loopVariables)
	r.walk(c.LoopStep(), loopVariables)
	readsElement := slices.ContainsFunc(r.reads[readCount:], func(read jsonpath.Read) bool {
		return len(read.Steps) >= len(list.steps) &&
			reflect.DeepEqual(read.Steps[:len(list.steps)], list.steps)
	})
	if list.isKnown && !c.HasIterVar2() && !readsElement {
		r.addRead(list, c.IterRange())
	}
	r.walk(c.Result(), resultVariables)
}

// pathOf returns the path of an expression that selects fields and elements of the object.
func pathOf(e ast.Expr, variables scope) valuePath {
	switch e.Kind() {
	case ast.IdentKind:
		return variables[e.AsIdent()]
	case ast.SelectKind:
		if operand := pathOf(e.AsSelect().Operand(), variables); operand.isKnown {
			return operand.appendSelector(jsonpath.Selector{Kind: jsonpath.SelectName,
				Name: e.AsSelect().FieldName()})
		}
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return valuePath{}
		}
		operand, indexExpr := pathOf(call.Args()[0], variables), call.Args()[1]
		if !operand.isKnown || indexExpr.Kind() != ast.LiteralKind {
			return valuePath{}
		}
		switch key := indexExpr.AsLiteral().(type) {
		case types.String:
			return operand.appendSelector(jsonpath.Selector{Kind: jsonpath.SelectName, Name: string(key)})
		case types.Int:
			return operand.appendSelector(jsonpath.Selector{Kind: jsonpath.SelectElements})
		}
	}
	return valuePath{}
}
