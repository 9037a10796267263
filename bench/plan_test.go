package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/bench/internal/experiment"
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

// TestLatencyEvents checks that the 99.9 % quantile is based on several updates.
func TestLatencyEvents(t *testing.T) {
	for _, s := range FullPlan() {
		if s.Experiment == experiment.LatencySlow || s.Experiment == experiment.LatencyFast {
			if s.Rounds*s.Events < 4_000 {
				t.Errorf("%s has %d updates, want at least 4000", s, s.Rounds*s.Events)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	got, err := CIPlan().Choose(Choice{
		Experiments: []string{experiment.Sync}, Subjects: []string{experiment.ClientGo,
			experiment.Stream}, Objects: 7, Rounds: 1,
	})
	want := Plan{{Experiment: experiment.Sync, Size: experiment.Small, Objects: 7, Rounds: 1,
		Subjects: []string{experiment.Stream, experiment.ClientGo}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, plan (-want +got):\n%s", err, diff)
	}
	for name, tt := range map[string]struct {
		choice Choice
		want   string
	}{
		"unknown experiment": {Choice{Experiments: []string{"nonsense"}}, `unknown experiment "nonsense"`},
		"unknown subject":    {Choice{Subjects: []string{"nonsense"}}, `unknown subject "nonsense"`},
		"nothing left": {Choice{Experiments: []string{experiment.Sync},
			Subjects: []string{experiment.Kubectl}}, "no step"},
		"too few objects": {Choice{Experiments: []string{experiment.BurstKey}, Objects: 10},
			"updates of different objects"},
	} {
		if _, err := CIPlan().Choose(tt.choice); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Choose gives error %v, want one with %q", name, err, tt.want)
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
