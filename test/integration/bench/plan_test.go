package main

import (
	"slices"
	"testing"
)

// TestPlanOrder checks that steps without a sandbox come first, that each kind of sandbox is used in one run
// of steps, and that no step has fewer objects than the step before it in the same sandbox.
func TestPlanOrder(t *testing.T) {
	for name, plan := range map[string]Plan{"full": FullPlan(), "CI": CIPlan()} {
		type kind struct{ size, gates string }
		var used []kind
		objects := 0
		for _, s := range plan {
			if !s.needsSandbox() {
				if len(used) > 0 {
					t.Errorf("%s: step %s is after a step with a sandbox", name, s)
				}
				continue
			}
			k := kind{s.Size, s.Gates}
			if len(used) == 0 || used[len(used)-1] != k {
				if slices.Contains(used, k) {
					t.Errorf("%s: step %s uses a sandbox that was stopped", name, s)
				}
				used, objects = append(used, k), 0
			}
			if s.countInSandbox() < objects {
				t.Errorf("%s: step %s has fewer objects than the %d of the step before", name, s, objects)
			}
			objects = s.countInSandbox()
		}
	}
}

// countInSandbox returns the number of objects that the sandbox must have.
func (s Step) countInSandbox() int {
	switch {
	case s.needsSyntheticServer():
		return s.recordedCount()
	case !s.needsSandbox():
		return 0
	}
	return s.Objects
}
