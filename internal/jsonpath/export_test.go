package jsonpath

import "context"

// Visited returns the number of values that the evaluation of a path on a decoded object visits.
func Visited(p *Path, obj any) int {
	ev := evaluator{ctx: context.Background()}
	defer ev.release()
	ev.walk(node{value: obj}, p.steps, func(node) bool { return true })
	return ev.visited
}

// VisitedByFilter returns the number of values that the evaluation of a filter on a decoded object visits.
func VisitedByFilter(f *Filter, obj any) int {
	ev := evaluator{ctx: context.Background()}
	defer ev.release()
	ev.match(node{value: obj}, f.cond)
	return ev.visited
}

// MustCompileFilter is CompileFilter for constant expressions. It panics on an error.
func MustCompileFilter(expr string) *Filter {
	f, err := CompileFilter(expr)
	if err != nil {
		panic(err)
	}
	return f
}

// AppendJSON appends the path's results in the JSON raw to dst. It returns dst unchanged on an error.
func (p *Path) AppendJSON(dst []Value, raw []byte) ([]Value, error) {
	err := p.FindJSON(raw, func(v Value) bool {
		dst = append(dst, v)
		return true
	})
	return dst, err
}
