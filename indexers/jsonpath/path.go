package jsonpath

import (
	"context"
	"strings"
)

// Path is a compiled path. It never changes and may be used from any number of goroutines.
type Path struct {
	expr     string
	dialect  Dialect
	steps    []Step
	prog     *op
	names    []string // of a path that consists of names
	direct   *direct  // of other paths of common forms, else nil
	one      bool     // at most one result
	rooted   bool     // it was written with $
	warnings []Diagnostic
	wanted   trie
}

// Compile parses a path such as .spec.issuerRef.name or {.status.conditions[?(@.type=="Ready")]}.
// The error is an [*Error] with a code, a position and a way out.
func Compile(expr string, options ...Option) (*Path, error) {
	c := newConfig(options)
	p := newParser(expr, c)
	steps, err := p.parsePath()
	if err != nil {
		return nil, err
	}
	if err := p.checkPath(steps); err != nil {
		return nil, err
	}
	path := newPath(expr, steps, c.dialect, p.notes)
	path.rooted = p.rooted
	return path, nil
}

// MustCompile is Compile for expressions that are part of a program; it panics on an error.
func MustCompile(expr string, options ...Option) *Path {
	p, err := Compile(expr, options...)
	if err != nil {
		panic(err)
	}
	return p
}

// FromSegments gives the path to a nested member by the keys on the way. The keys stand for
// themselves: nothing in them needs escaping, and "*" or "0" are keys too. Without keys it is the
// path to the whole object. Broken UTF-8 in a key is replaced as JSON decoders replace it.
func FromSegments(keys ...string) *Path {
	steps := make([]Step, len(keys))
	for i, k := range keys {
		steps[i] = Step{Selectors: []Selector{{Kind: SelectName, Name: validUTF8(k)}}}
	}
	p := newPath("", steps, Literal, nil)
	p.expr = p.String()
	return p
}

func newPath(expr string, steps []Step, d Dialect, notes []Diagnostic) *Path {
	p := &Path{expr: expr, dialect: d, steps: steps, prog: compile(steps), one: singular(steps),
		warnings: notes}
	if names, rest := leadingNames(p.prog); rest == nil {
		p.names = names
	} else {
		p.direct = newDirect(p.prog)
	}
	p.wanted.add(p.prog)
	return p
}

// String gives the path in its canonical form, which compiles to the same path in the same dialect.
func (p *Path) String() string {
	var b strings.Builder
	formatSteps(&b, "$", p.steps, p.dialect)
	return b.String()
}

// Expr gives the expression the path was compiled from, unchanged.
func (p *Path) Expr() string { return p.expr }

// Dialect gives the dialect the path was compiled in.
func (p *Path) Dialect() Dialect { return p.dialect }

// Warnings gives what is legal in the expression but may not be what was meant, in the order of
// their places.
func (p *Path) Warnings() []Diagnostic { return append([]Diagnostic(nil), p.warnings...) }

// Singular tells whether the path leads to at most one value in any object: it consists of keys and
// indexes alone.
func (p *Path) Singular() bool { return p.one }

// Rooted tells whether the path was written with a $ at its beginning. Evaluating it makes no difference;
// callers that evaluate paths within a part of an object may use it to let one begin at the whole object.
func (p *Path) Rooted() bool { return p.rooted }

// Steps gives the parts of the path, for instance to check them against a schema. The result is a
// copy.
func (p *Path) Steps() []Step { return cloneSteps(p.steps) }

// Find calls yield for each value the path leads to in obj, in order, until yield returns false. obj
// is what decoding JSON for unstructured objects gives: nil, bool, int64, float64, string, []any or
// map[string]any; int counts as a number too. Other Go values can be results, but nothing is found
// in them and they equal nothing. A null at the end of the path is a result; one on the way is not.
//
// Find does not change or keep obj. yield may use paths itself. A path that is Singular allocates
// nothing.
func (p *Path) Find(obj any, yield func(v any) bool) {
	if p.names != nil {
		if v, ok := lookUp(obj, p.names); ok {
			yield(v)
		}
		return
	}
	if p.direct == nil || !p.direct.find(obj, yield) {
		p.evaluate(evaluator{check: never}, obj, yield)
	}
}

// FindContext is [Path.Find] that ends early, with the cause, once the context has ended.
func (p *Path) FindContext(ctx context.Context, obj any, yield func(v any) bool) error {
	if p.names != nil {
		p.Find(obj, yield)
		return nil
	}
	return p.evaluate(evaluator{ctx: ctx}, obj, yield)
}

// evaluate finds by the program, which all paths have.
func (p *Path) evaluate(ev evaluator, obj any, yield func(v any) bool) error {
	defer ev.release()
	ev.walk(node{v: obj}, p.prog, func(n node) bool { return yield(n.v) })
	return ev.err
}

// Append appends the values the path leads to in obj; see [Path.Find].
func (p *Path) Append(dst []any, obj any) []any {
	p.Find(obj, func(v any) bool {
		dst = append(dst, v)
		return true
	})
	return dst
}

// First gives the first value the path leads to in obj, and whether there is one; see [Path.Find].
func (p *Path) First(obj any) (v any, ok bool) {
	switch {
	case p.names != nil:
		return lookUp(obj, p.names)
	case p.one:
		n, _, ok := follow(node{v: obj}, p.prog)
		return n.v, ok
	}
	p.Find(obj, func(found any) bool {
		v, ok = found, true
		return false
	})
	return v, ok
}
