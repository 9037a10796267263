package jsonpath

import (
	"context"
	"strings"
)

// Filter is a compiled condition on a value, such as
//
//	!(@.status.conditions[?(@.type=="Ready" && @.status=="True")])
//
// It never changes and may be used from any number of goroutines.
type Filter struct {
	expr     string
	dialect  Dialect
	cond     *condition
	warnings []Diagnostic
	wanted   trie
}

// CompileFilter parses a condition, which is what may stand in the parentheses of [?(...)]. "@" is
// the object that the condition is asked about. The error is an [*Error].
func CompileFilter(expr string, options ...Option) (*Filter, error) {
	c := newConfig(options)
	p := newParser(expr, c)
	cond, err := p.parseCondition()
	if err != nil {
		return nil, err
	}
	if err := p.checkFilter(cond); err != nil {
		return nil, err
	}
	f := newFilter(cond, c.dialect)
	f.expr, f.warnings = expr, p.notes
	return f, nil
}

// MustCompileFilter is CompileFilter for expressions that are part of a program; it panics on an
// error.
func MustCompileFilter(expr string, options ...Option) *Filter {
	f, err := CompileFilter(expr, options...)
	if err != nil {
		panic(err)
	}
	return f
}

func newFilter(c *condition, d Dialect) *Filter {
	f := &Filter{cond: c, dialect: d}
	budget := trieBudget
	f.wanted.addCondition(c, &budget)
	return f
}

// String gives the condition in its canonical form, which compiles to the same condition in the same
// dialect.
func (f *Filter) String() string {
	var b strings.Builder
	formatCondition(&b, f.cond, condOr, f.dialect)
	return b.String()
}

// Expr gives the expression the filter was compiled from; of a filter within a path, its part of it.
func (f *Filter) Expr() string { return f.expr }

// Dialect gives the dialect the filter was compiled in.
func (f *Filter) Dialect() Dialect { return f.dialect }

// Warnings gives what is legal in the expression but may not be what was meant. The warnings of a
// filter within a path are among those of the path.
func (f *Filter) Warnings() []Diagnostic { return append([]Diagnostic(nil), f.warnings...) }

// Operands gives the steps of each path in the condition, in the order in which they are written,
// for instance to check them against a schema. They start at the value under test. The result is a
// copy; offsets are those in the whole expression.
func (f *Filter) Operands() [][]Step {
	var paths [][]Step
	for _, o := range f.cond.operands(nil) {
		paths = append(paths, cloneSteps(o.steps))
	}
	return paths
}

// Existences gives the steps of each path that is only asked whether it leads to anything, which also null
// and false do, in the order in which they are written. They are among the Operands, and a copy too.
func (f *Filter) Existences() [][]Step {
	var paths [][]Step
	for _, steps := range f.cond.existences(nil) {
		paths = append(paths, cloneSteps(steps))
	}
	return paths
}

// Match tells whether the condition holds for obj; see [Path.Find] for what obj can be. A comparison
// with a value that obj does not have is false.
func (f *Filter) Match(obj any) bool {
	ev := evaluator{check: never}
	defer ev.release()
	return ev.test(node{v: obj}, f.cond)
}

// MatchContext is [Filter.Match] that ends early, with the cause, once the context has ended.
func (f *Filter) MatchContext(ctx context.Context, obj any) (bool, error) {
	ev := evaluator{ctx: ctx}
	defer ev.release()
	return ev.holds(node{v: obj}, f.cond), ev.err
}

// MatchJSON tells whether the condition holds for the JSON document raw, as [Filter.Match] does for
// the decoded document. A document that is not valid JSON gives a [*SyntaxError] and false.
func (f *Filter) MatchJSON(raw []byte) (bool, error) {
	return f.MatchJSONContext(context.Background(), raw)
}

// MatchJSONContext is [Filter.MatchJSON] that ends early, with the cause, once the context has ended.
func (f *Filter) MatchJSONContext(ctx context.Context, raw []byte) (bool, error) {
	ev := evaluator{ctx: ctx}
	defer ev.release()
	t := &ev.space().tape
	if err := t.scan(raw, &f.wanted); err != nil {
		return false, err
	}
	return ev.holds(node{t: t}, f.cond), ev.err
}
