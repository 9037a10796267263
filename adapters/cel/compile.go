package cel

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celcommon "github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	celnames "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// self is the name of the object in expressions.
const self = "self"

// environments are built on first use, because that takes milliseconds.
var (
	baseEnv = sync.OnceValue(func() *cel.Env {
		return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	})
	untypedEnv = sync.OnceValues(func() (*cel.Env, error) { return extend(cel.Variable(self, cel.DynType)) })
)

var limits = []cel.ProgramOption{cel.CostLimit(apiservercel.PerCallLimit),
	cel.InterruptCheckFrequency(apiservercel.CheckFrequency)}

// extend returns the environment of the API server with options. self.`a-b` names a field.
func extend(options ...cel.EnvOption) (*cel.Env, error) {
	return baseEnv().Extend(append(options, cel.EnableIdentifierEscapeSyntax())...)
}

// celExpression implements expression.Expression.
type celExpression struct {
	text    string
	program cel.Program
	result  expression.Kind
	reads   []jsonpath.Read
	untyped *ast.AST // checked without a schema
	// schema has the fields that the expression reads, and schemaText is its JSON; nil without a schema.
	schema     common.Schema
	schemaText string
}

func (c *celExpression) String() string          { return c.text + c.schemaText }
func (c *celExpression) Result() expression.Kind { return c.result }
func (c *celExpression) Reads() []jsonpath.Read  { return c.reads }

// compile compiles an expression without a schema.
func compile(text string) (expression.Expression, error) {
	env, err := untypedEnv()
	if err != nil {
		return nil, wholeError(text, err)
	}
	checked, kind, problems := check(env, text)
	if problems != nil {
		return nil, &expression.Error{Text: text, Problems: problems}
	}
	program, err := env.Program(checked, limits...)
	if err != nil {
		return nil, wholeError(text, err)
	}
	return &celExpression{text: text, program: program, result: kind, untyped: checked.NativeRep(),
		reads: readsOf(text, checked.NativeRep())}, nil
}

func wholeError(text string, err error) error {
	problem := wholeProblem(text, err.Error(), correctHint)
	return &expression.Error{Text: text, Problems: []expression.Problem{problem}}
}

func wholeProblem(text, message, hint string) expression.Problem {
	return expression.Problem{End: len(text), Message: message, Hint: hint}
}

const correctHint = "correct the expression"

// check parses an expression and checks its types.
func check(env *cel.Env, text string) (*cel.Ast, expression.Kind, []expression.Problem) {
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, 0, naming.Map(issues.Errors(),
			func(e *cel.Error) expression.Problem { return problemOf(text, e) })
	}
	if problems := escapedNames(text, checked.NativeRep()); problems != nil {
		return nil, 0, problems
	}
	kind, ok := kindOf(checked.OutputType())
	if !ok {
		return nil, 0, []expression.Problem{wholeProblem(text,
			"the result has the type "+checked.OutputType().String(),
			"write a string, number or boolean, or a list of them; string(…) converts")}
	}
	return checked, kind, nil
}

// escapedNames reports the names of fields that are escaped as in validation rules, such as __namespace__.
func escapedNames(text string, checked *ast.AST) (problems []expression.Problem) {
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.SelectKind {
			return
		}
		escaped := e.AsSelect().FieldName()
		if name, ok := celnames.Unescape(escaped); ok && name != escaped {
			offset := offsetAt(text, checked.SourceInfo().GetStartLocation(e.ID()))
			problems = append(problems, expression.Problem{Offset: offset, End: endOfName(text, offset),
				Message: escaped + " is the escaped form of " + name,
				Hint:    fmt.Sprintf("write .`%s`, or [%q]", name, escaped)})
		}
	}))
	return problems
}

// kindOf returns false for types that no index can have.
func kindOf(t *cel.Type) (expression.Kind, bool) {
	switch t.Kind() {
	case types.BoolKind:
		return expression.Bool, true
	case types.StringKind, types.IntKind, types.UintKind, types.DoubleKind, types.NullTypeKind:
		return expression.Scalar, true
	case types.DynKind, types.AnyKind, types.TypeParamKind:
		return expression.Any, true
	case types.ListKind:
		element, ok := kindOf(t.Parameters()[0])
		return expression.List, ok && element != expression.List
	case types.OpaqueKind:
		if t.TypeName() != "optional_type" {
			return 0, false
		}
		value, ok := kindOf(t.Parameters()[0])
		if value == expression.Bool {
			value = expression.Scalar // a condition cannot be none
		}
		return value, ok
	}
	return 0, false
}

// problemOf converts an error of cel-go.
func problemOf(text string, e *celcommon.Error) expression.Problem {
	p := expression.Problem{Offset: offsetAt(text, e.Location), Hint: correctHint}
	if strings.HasPrefix(e.Message, "undefined field") && strings.HasPrefix(text[p.Offset:], ".") {
		p.Offset++
	}
	p.End = endOfName(text, p.Offset)
	p.Message = strings.TrimSpace(strings.SplitN(e.Message, "\n", 2)[0])
	if rest, ok := strings.CutPrefix(p.Message, "Syntax error: "); ok {
		p.Message = "syntax error: " + rest
	}
	switch {
	case strings.HasPrefix(p.Message, "undeclared reference to"):
		p.Hint = "begin with self, which is the object, as in self.spec.name"
	case strings.HasPrefix(p.Message, "undefined field"):
		p.Hint = "write a field of the schema; self.`a-b` names one that is not of letters and digits"
	case strings.Contains(p.Message, "overload for '_[_]'"):
		p.Hint = "write a field as .name or .`a-b`, and an element of a list as [0]"
	case strings.Contains(p.Message, "no matching overload"):
		p.Hint = "convert an operand, as in string(self.spec.size)"
	}
	return p
}

// offsetAt returns the byte offset of a location.
func offsetAt(text string, location celcommon.Location) int {
	runes := []rune(text)
	offset, _ := celcommon.NewTextSource(text).LocationOffset(location)
	return min(len(string(runes[:min(max(int(offset), 0), len(runes))])), len(text))
}

var nameAt = regexp.MustCompile(`^\.?[\pL\p{Nd}_]*`)

// endOfName returns the end of the name or character at an offset, which can be the dot before the name.
func endOfName(text string, offset int) int {
	return min(offset+max(len(nameAt.FindString(text[offset:])), 1), len(text))
}
