package jsonpath

import (
	"cmp"
	"context"
	"fmt"
	"math"
)

// maxUnionOverlap limits how often unions can select one value. Otherwise, each [0,0] would double them.
const maxUnionOverlap = 16

// complexity checks that evaluating an expression takes time proportional to the size of the document and the
// length of the expression. Parsing ends with this check, so that evaluations need no budget and never fail.
//
// Two kinds of steps could multiply the work: a second "..", which visits a value once for each of its
// ancestors, and unions that select one value several times. All other steps visit a value at most once.
type complexity struct {
	parser       *parser
	alternatives int
	// recursive is set after "..".
	recursive bool
}

func (w complexity) checkSteps(steps []Step) error {
	for _, s := range steps {
		if s.Recursive && w.recursive {
			return w.parser.fail(CodeWork, s.Offset, s.End,
				"name the fields on the way to it, or give each part on its own",
				`a second ".." visits everything many times`)
		}
		w.recursive = w.recursive || s.Recursive
		if w.alternatives *= overlap(s.Selectors); w.alternatives > maxUnionOverlap {
			return w.parser.fail(CodeWork, s.Offset, s.End, "leave out selectors that select the same",
				"unions can select one value more than %d times", maxUnionOverlap)
		}
		for _, sel := range s.Selectors {
			if sel.Filter != nil {
				if err := w.checkCondition(sel.Filter.cond); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkCondition checks the paths of a condition, which are relative to the tested value.
func (w complexity) checkCondition(c *condition) error {
	for _, a := range c.args {
		if err := w.checkCondition(a); err != nil {
			return err
		}
	}
	if c.kind == condCompare && c.left.isPath && c.right.isPath && w.recursive {
		return w.parser.fail(CodeWork, c.left.offset, c.right.end,
			"compare with a literal, or name the fields on the way",
			`a comparison of two paths after ".." reads everything many times`)
	}
	return cmp.Or(w.checkSteps(c.left.steps), w.checkSteps(c.right.steps))
}

// overlap returns the maximum number of selectors that can select the same value.
func overlap(selectors []Selector) int {
	if len(selectors) == 1 {
		return 1
	}
	names, indexes := map[string]int{}, map[int]int{}
	maxSameName, maxSameIndex, maxSameNegativeIndex, listSelectors, anySelectors := 0, 0, 0, 0, 0
	for _, s := range selectors {
		switch {
		case s.Kind == SelectName:
			names[s.Name]++
			maxSameName = max(maxSameName, names[s.Name])
		case s.Kind == SelectIndex:
			indexes[s.Index]++
			if s.Index >= 0 {
				maxSameIndex = max(maxSameIndex, indexes[s.Index])
			} else {
				maxSameNegativeIndex = max(maxSameNegativeIndex, indexes[s.Index])
			}
		case s.Kind == SelectSlice, s.Kind == SelectElements:
			listSelectors++
		default:
			anySelectors++
		}
	}
	return max(maxSameName, maxSameIndex+maxSameNegativeIndex+listSelectors) + anySelectors
}

// workBetweenChecks is the number of visited values between two checks of the context.
const workBetweenChecks = 1 << 10

const neverCheck = math.MaxInt

// countVisited counts visited values. It returns false after the context has ended.
func (ev *evaluator) countVisited(values int) bool {
	ev.visited += values
	return ev.visited < ev.nextCheck || ev.checkContext()
}

func (ev *evaluator) checkContext() bool {
	if ev.err == nil && ev.ctx.Err() != nil {
		ev.err = fmt.Errorf("evaluate the expression: %w", context.Cause(ev.ctx))
	}
	if ev.err != nil {
		return false
	}
	ev.nextCheck = ev.visited + workBetweenChecks
	return true
}
