package jsonpath

import (
	"context"
	"strings"
)

// Path is a compiled path. It is immutable and safe for concurrent use.
type Path struct {
	expr          string
	steps         []Step
	isSingular    bool // has at most one result
	isRooted      bool // begins with $
	warnings      []Diagnostic
	selectedPaths trie
}

// Compile compiles a path such as .spec.issuerRef.name or {.status.conditions[?(@.type=="Ready")]}. The error
// is an [*Error] with a code, a position and a remedy.
func Compile(expr string) (*Path, error) {
	p := &parser{src: expr}
	steps, err := p.parsePath()
	if err != nil {
		return nil, err
	}
	if err := (complexity{parser: p, alternatives: 1}).checkSteps(steps); err != nil {
		return nil, err
	}
	path := newPath(expr, steps, p.warnings)
	path.isRooted = p.rooted
	return path, nil
}

// MustCompile works like Compile for constant expressions. It panics on an error.
func MustCompile(expr string) *Path {
	p, err := Compile(expr)
	if err != nil {
		panic(err)
	}
	return p
}

// FromSegments returns the path of nested keys. Keys need no escaping, and "*" or "0" are keys too. Without
// keys it is the path of the whole object. Invalid UTF-8 is replaced like in JSON decoders.
func FromSegments(keys ...string) *Path {
	steps := make([]Step, len(keys))
	for i, k := range keys {
		steps[i] = Step{Selectors: []Selector{{Kind: SelectName, Name: string([]rune(k))}}}
	}
	p := newPath("", steps, nil)
	p.expr = p.String()
	return p
}

// Containers returns the path of the maps and lists whose values p selects, if p ends in .*; otherwise nil.
func (p *Path) Containers() *Path {
	last := len(p.steps) - 1
	if last < 0 || p.steps[last].Recursive || len(p.steps[last].Selectors) != 1 ||
		p.steps[last].Selectors[0].Kind != SelectMembers {
		return nil
	}
	containers := newPath("", cloneSteps(p.steps[:last]), nil)
	containers.expr = containers.String()
	return containers
}

func newPath(expr string, steps []Step, warnings []Diagnostic) *Path {
	p := &Path{expr: expr, steps: steps, isSingular: isSingular(steps), warnings: warnings}
	p.selectedPaths.add(steps)
	return p
}

// String returns the canonical form, which compiles to the same path.
func (p *Path) String() string {
	var b strings.Builder
	formatSteps(&b, "$", p.steps)
	return b.String()
}

// Expr returns the source expression.
func (p *Path) Expr() string { return p.expr }

// Warnings returns findings about a valid expression that may be meant otherwise, in source order.
func (p *Path) Warnings() []Diagnostic { return append([]Diagnostic(nil), p.warnings...) }

// Singular reports whether the path has at most one result in any object: it consists of keys and indexes.
func (p *Path) Singular() bool { return p.isSingular }

// Rooted reports whether the expression begins with $. It does not affect evaluation. Callers that evaluate
// paths within a part of an object can use it to start at the whole object.
func (p *Path) Rooted() bool { return p.isRooted }

// Steps returns a copy of the path's steps, for instance for a schema check.
func (p *Path) Steps() []Step { return cloneSteps(p.steps) }

// Find calls yield for each result in obj, in order, until yield returns false. obj is a decoded JSON value
// as in unstructured objects: nil, bool, int64, float64, string, []any or map[string]any; int is accepted as
// a number. Other Go values can be results, but have no members and equal nothing. A null at the end of the
// path is a result.
//
// Find does not change or retain obj. yield can use the package. A singular path allocates nothing.
func (p *Path) Find(obj any, yield func(v any) bool) {
	p.evaluate(evaluator{nextCheck: neverCheck}, obj, yield)
}

// FindContext works like [Path.Find], but returns the cause when the context ends.
func (p *Path) FindContext(ctx context.Context, obj any, yield func(v any) bool) error {
	return p.evaluate(evaluator{ctx: ctx}, obj, yield)
}

func (p *Path) evaluate(ev evaluator, obj any, yield func(v any) bool) error {
	defer ev.release()
	ev.walk(node{value: obj}, p.steps, func(n node) bool { return yield(n.value) })
	return ev.err
}

// Append appends the results in obj; see [Path.Find].
func (p *Path) Append(dst []any, obj any) []any {
	p.Find(obj, func(v any) bool {
		dst = append(dst, v)
		return true
	})
	return dst
}

// First returns the first result in obj, and whether there is one; see [Path.Find].
func (p *Path) First(obj any) (v any, ok bool) {
	if p.isSingular {
		n, _, ok := runSingular(node{value: obj}, p.steps)
		return n.value, ok
	}
	p.Find(obj, func(found any) bool {
		v, ok = found, true
		return false
	})
	return v, ok
}

// FindJSON calls yield for each result in a JSON document, in order, until yield returns false. The results
// equal the results of [Path.Find] on the decoded document.
//
// The whole document is checked before the first result, because the last of duplicate keys counts. Invalid
// JSON gives a [*jsontext.SyntaxError] and no results. Documents are limited to 2 GiB and a nesting of 10000.
//
// Values reference raw. Paths of keys, indexes and [*] allocate nothing. Use a [Set] to evaluate several
// paths in one scan.
func (p *Path) FindJSON(raw []byte, yield func(v Value) bool) error {
	return p.FindJSONContext(context.Background(), raw, yield)
}

// FindJSONContext works like [Path.FindJSON], but returns the cause when the context ends.
func (p *Path) FindJSONContext(ctx context.Context, raw []byte, yield func(v Value) bool) error {
	ev := evaluator{ctx: ctx}
	defer ev.release()
	t := &ev.acquireScratch().tape
	if err := t.scan(raw, &p.selectedPaths); err != nil {
		return err
	}
	ev.walk(node{tape: t}, p.steps, func(n node) bool { return yield(n.tape.value(n.index)) })
	return ev.err
}

// FirstJSON returns the first result in raw, and whether there is one; see [Path.FindJSON].
func (p *Path) FirstJSON(raw []byte) (v Value, ok bool, err error) {
	err = p.FindJSON(raw, func(found Value) bool {
		v, ok = found, true
		return false
	})
	return v, ok, err
}

// SplitList splits a list of paths or names at its commas, except within brackets.
func SplitList(text string) (items []string) {
	start, depth, quote := 0, 0, rune(0)
	isEscaped := false
	for i, r := range text {
		switch {
		case isEscaped:
			isEscaped = false
		case quote != 0:
			if isEscaped = r == '\\'; r == quote {
				quote = 0
			}
		case depth > 0 && (r == '\'' || r == '"'):
			quote = r
		case r == '[' || r == '(':
			depth++
		case r == ']' || r == ')':
			depth--
		case r == ',' && depth <= 0:
			items = append(items, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(items, strings.TrimSpace(text[start:]))
}
