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

// readCollector collects the paths that an expression reads. It names too many rather than too few:
// everything below a path that the expression uses as a value, and the parent of a field whose name is
// computed.
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

func (l valuePath) appendSelector(s jsonpath.Selector) valuePath {
	return valuePath{true, append(slices.Clip(l.steps), jsonpath.Step{Selectors: []jsonpath.Selector{s}})}
}

func (r *readCollector) record(l valuePath, e ast.Expr) {
	for e.Kind() != ast.IdentKind { // the variable at the start of the path
		if e.Kind() == ast.SelectKind {
			e = e.AsSelect().Operand()
		} else {
			e = e.AsCall().Args()[0]
		}
	}
	at := offsetAt(r.text, r.ast.SourceInfo().GetStartLocation(e.ID()))
	end := at
	for end < len(r.text) && (r.text[end] == '.' || r.text[end] == '?' || endOfName(r.text, end) > end+1) {
		end = endOfName(r.text, end)
	}
	r.reads = append(r.reads, jsonpath.Read{Steps: l.steps, Whole: true, Offset: at, End: max(end, at+1)})
}

// walk records the paths that an expression reads.
func (r *readCollector) walk(e ast.Expr, in scope) {
	if l := locate(e, in); l.isKnown {
		if e.Kind() == ast.IdentKind && e.AsIdent() != self && len(l.steps) > 0 {
			l.steps = l.steps[:len(l.steps)-1] // the element is a key if the list is a map
		}
		r.record(l, e)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		r.walk(e.AsSelect().Operand(), in)
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			r.walk(call.Target(), in)
		}
		for _, argument := range call.Args() {
			r.walk(argument, in)
		}
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			r.walk(element, in)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.walk(entry.AsMapEntry().Key(), in)
			r.walk(entry.AsMapEntry().Value(), in)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.walk(field.AsStructField().Value(), in)
		}
	case ast.ComprehensionKind:
		r.walkComprehension(e.AsComprehension(), in)
	}
}

func (r *readCollector) walkComprehension(c ast.ComprehensionExpr, in scope) {
	r.walk(c.AccuInit(), in)
	inner := maps.Clone(in)
	inner[c.AccuVar()] = valuePath{}
	result := maps.Clone(inner)
	list := locate(c.IterRange(), in)
	if list.isKnown && !c.HasIterVar2() {
		inner[c.IterVar()] = list.appendSelector(jsonpath.Selector{Kind: jsonpath.SelectElements})
	} else {
		r.walk(c.IterRange(), in)
		inner[c.IterVar()], inner[c.IterVar2()] = valuePath{}, valuePath{}
	}
	before := len(r.reads)
	r.walk(c.LoopCondition(), inner)
	r.walk(c.LoopStep(), inner)
	readsElement := slices.ContainsFunc(r.reads[before:], func(read jsonpath.Read) bool {
		return len(read.Steps) >= len(list.steps) &&
			reflect.DeepEqual(read.Steps[:len(list.steps)], list.steps)
	})
	if list.isKnown && !c.HasIterVar2() && !readsElement {
		r.record(list, c.IterRange())
	}
	r.walk(c.Result(), result)
}

// locate returns the path of an expression that selects fields and elements of the object.
func locate(e ast.Expr, in scope) valuePath {
	switch e.Kind() {
	case ast.IdentKind:
		return in[e.AsIdent()]
	case ast.SelectKind:
		if l := locate(e.AsSelect().Operand(), in); l.isKnown {
			return l.appendSelector(jsonpath.Selector{Kind: jsonpath.SelectName,
				Name: e.AsSelect().FieldName()})
		}
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return valuePath{}
		}
		l, by := locate(call.Args()[0], in), call.Args()[1]
		if !l.isKnown || by.Kind() != ast.LiteralKind {
			return valuePath{}
		}
		switch key := by.AsLiteral().(type) {
		case types.String:
			return l.appendSelector(jsonpath.Selector{Kind: jsonpath.SelectName, Name: string(key)})
		case types.Int:
			return l.appendSelector(jsonpath.Selector{Kind: jsonpath.SelectElements})
		}
	}
	return valuePath{}
}
