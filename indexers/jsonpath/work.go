package jsonpath

import (
	"context"
	"fmt"
	"math"
)

// limitWays is the number of ways in which the unions of an expression may lead to one value. Without a
// limit, each [0,0] would double the results.
const limitWays = 16

// work is the state of a check that evaluating an expression takes time in proportion to the size of the
// document and the length of the expression. Parsing ends with this check, so evaluations need no budget and
// never fail.
//
// Two kinds of steps could multiply the work: a second "..", which visits a value once for each value around
// it, and unions that select one value several times. All other steps visit a value at most once.
type work struct {
	parser *parser
	// ways is the number of ways to one value.
	ways int
	// recursive is set after "..".
	recursive bool
}

// checkPath checks a whole path.
func (p *parser) checkPath(steps []Step) error {
	_, err := work{parser: p, ways: 1}.path(steps)
	return err
}

// checkFilter checks a whole condition.
func (p *parser) checkFilter(c *condition) error { return work{parser: p, ways: 1}.condition(c) }

// path checks steps and returns the state after them.
func (w work) path(steps []Step) (work, error) {
	for _, step := range steps {
		var err error
		if w, err = w.step(step); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w work) step(s Step) (work, error) {
	if s.Recursive && w.recursive {
		return w, w.parser.fail(CodeWork, s.Offset, s.End,
			"name the fields on the way to it, or give each part on its own",
			`a second ".." visits everything many times`)
	}
	w.recursive = w.recursive || s.Recursive
	if w.ways *= overlap(s.Selectors, w.recursive); w.ways > limitWays {
		return w, w.parser.fail(CodeWork, s.Offset, s.End, "leave out selectors that select the same",
			"unions can select one value more than %d times", limitWays)
	}
	after := w
	for _, sel := range s.Selectors {
		if sel.Filter != nil {
			if err := w.condition(sel.Filter.cond); err != nil {
				return w, err
			}
		}
		inner, err := w.path(sel.Path)
		if err != nil {
			return w, err
		}
		after.ways, after.recursive = max(after.ways, inner.ways), after.recursive || inner.recursive
	}
	return after, nil
}

// condition checks the paths of a condition, which begin at the value under test.
func (w work) condition(c *condition) error {
	for _, a := range c.args {
		if err := w.condition(a); err != nil {
			return err
		}
	}
	if c.kind == condCompare && c.left.isPath && c.right.isPath && w.recursive {
		return w.parser.fail(CodeWork, c.left.from, c.right.to,
			"compare with a literal, or name the fields on the way",
			`a comparison of two paths after ".." reads everything many times`)
	}
	for _, o := range []*operand{&c.left, &c.right} {
		if _, err := w.path(o.steps); err != nil {
			return err
		}
	}
	return nil
}

// overlap returns how many of the selectors can select the same value, at most.
func overlap(selectors []Selector, recursive bool) int {
	if len(selectors) == 1 {
		return 1
	}
	names, indexes := map[string]int{}, map[int]int{}
	name, front, back, list, any := 0, 0, 0, 0, 0
	for _, s := range selectors {
		switch {
		case s.Kind == SelectPath && !recursive && startsWithName(s.Path):
			s.Name = s.Path[0].Selectors[0].Name
			fallthrough
		case s.Kind == SelectName:
			names[s.Name]++
			name = max(name, names[s.Name])
		case s.Kind == SelectIndex:
			indexes[s.Index]++
			if s.Index >= 0 {
				front = max(front, indexes[s.Index])
			} else {
				back = max(back, indexes[s.Index])
			}
		case s.Kind == SelectSlice, s.Kind == SelectElements:
			list++
		default:
			any++
		}
	}
	return max(name, front+back+list) + any
}

func startsWithName(steps []Step) bool {
	first := steps[0]
	return !first.Recursive && len(first.Selectors) == 1 && first.Selectors[0].Kind == SelectName
}

// workBetweenChecks is the number of visited values after which an evaluation looks at its context again.
const workBetweenChecks = 1 << 10

// never is the number of visited values after which an evaluation without a context looks at it.
const never = math.MaxInt

// work counts visited values. It is false once the context has ended.
func (ev *evaluator) work(values int) bool {
	ev.visited += values
	return ev.visited < ev.check || ev.goOn()
}

// goOn looks at the context.
func (ev *evaluator) goOn() bool {
	if ev.err == nil && ev.ctx.Err() != nil {
		ev.err = fmt.Errorf("evaluate the expression: %w", context.Cause(ev.ctx))
	}
	if ev.err != nil {
		return false
	}
	ev.check = ev.visited + workBetweenChecks
	return true
}
