package jsonpath

import "context"

// Visited returns how many values evaluating a path over a decoded object visits.
func Visited(p *Path, obj any) int {
	ev := evaluator{ctx: context.Background()}
	defer ev.release()
	ev.walk(node{v: obj}, p.prog, func(node) bool { return true })
	return ev.visited
}

// VisitedByFilter returns how many values testing a condition of a decoded object visits.
func VisitedByFilter(f *Filter, obj any) int {
	ev := evaluator{ctx: context.Background()}
	defer ev.release()
	ev.test(node{v: obj}, f.cond)
	return ev.visited
}
