package jsonpath

import (
	"context"
	"strings"
)

// Filter is a compiled condition on a value, such as
//
//	!(@.status.conditions[?(@.type=="Ready" && @.status=="True")])
//
// It is immutable and safe for concurrent use.
type Filter struct {
	expr          string
	cond          *condition
	warnings      []Diagnostic
	selectedPaths trie
}

// CompileFilter compiles a condition in the syntax of [?(...)]. "@" is the object. Errors are [*Error]s.
func CompileFilter(expr string) (*Filter, error) {
	p := &parser{src: expr}
	cond, err := p.parseCondition()
	if err != nil {
		return nil, err
	}
	if err := (complexity{parser: p, alternatives: 1}).checkCondition(cond); err != nil {
		return nil, err
	}
	return newFilter(expr, cond, p.warnings), nil
}

// CompileTest compiles a condition, or a path that has to exist. If both fail, the condition's error counts.
func CompileTest(expr string) (*Filter, error) {
	filter, err := CompileFilter(expr)
	if err == nil {
		return filter, nil
	}
	path, pathErr := Compile(expr)
	if pathErr != nil {
		return nil, err
	}
	exists := &condition{kind: condExists, left: operand{isPath: true, steps: path.steps}}
	return newFilter(expr, exists, path.warnings), nil
}

func newFilter(expr string, c *condition, warnings []Diagnostic) *Filter {
	f := &Filter{expr: expr, cond: c, warnings: warnings}
	budget := trieBudget
	f.selectedPaths.addCondition(c, &budget)
	return f
}

// String returns the canonical form, which compiles to the same condition.
func (f *Filter) String() string {
	var b strings.Builder
	formatCondition(&b, f.cond, condOr)
	return b.String()
}

// Expr returns the source expression; for a filter within a path, its part of it.
func (f *Filter) Expr() string { return f.expr }

// Warnings returns findings about a valid expression that may have another meaning than intended. Warnings of
// a filter within a path belong to the path.
func (f *Filter) Warnings() []Diagnostic { return append([]Diagnostic(nil), f.warnings...) }

// Match reports whether the condition matches obj; see [Path.Find] for valid types of obj. A comparison with
// a missing value is false.
func (f *Filter) Match(obj any) bool {
	ev := evaluator{nextCheck: neverCheck}
	defer ev.release()
	return ev.match(node{value: obj}, f.cond)
}

// MatchContext works like [Filter.Match], but returns the cause when the context ends.
func (f *Filter) MatchContext(ctx context.Context, obj any) (bool, error) {
	ev := evaluator{ctx: ctx}
	defer ev.release()
	return ev.matchUnlessDone(node{value: obj}, f.cond), ev.err
}

// MatchJSONContext reports whether the condition matches a JSON document, with the same result as
// [Filter.MatchContext] on the decoded document. Invalid JSON gives false and a [*jsontext.SyntaxError]. It
// returns the cause when the context ends.
func (f *Filter) MatchJSONContext(ctx context.Context, raw []byte) (bool, error) {
	ev := evaluator{ctx: ctx}
	defer ev.release()
	t := &ev.acquireScratch().tape
	if err := t.scan(raw, &f.selectedPaths); err != nil {
		return false, err
	}
	return ev.matchUnlessDone(node{tape: t}, f.cond), ev.err
}
