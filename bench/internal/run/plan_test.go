package run

import (
	"slices"
	"testing"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/report"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

func newPlan(t *testing.T, o PlanOptions) Plan {
	t.Helper()
	p, err := NewPlan(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOrder checks that no step wants fewer objects than one before it with the same sandbox.
func TestOrder(t *testing.T) {
	o := DefaultPlanOptions()
	o.Sizes = []int{50_000, 1_000}
	o.LargeSizes = []int{2_000, 1_000}
	size, objects := experiment.Small, 0
	for _, s := range newPlan(t, o) {
		if !s.sandboxed() {
			if objects > 0 {
				t.Errorf("%s comes when there is a sandbox", s)
			}
			continue
		}
		switch {
		case s.Size == size:
		case slices.Index(sizes, s.Size) > slices.Index(sizes, size):
			size, objects = s.Size, 0
		default:
			t.Fatalf("%s comes back to objects that are gone", s)
		}
		if s.inSandbox() < objects {
			t.Errorf("%s comes after %d objects", s, objects)
		}
		objects = s.inSandbox()
	}
	if size != experiment.Many {
		t.Error("there is no step with many types")
	}
}

// TestTime keeps the runs within what is expected of them.
func TestTime(t *testing.T) {
	if e := newPlan(t, DefaultPlanOptions()).Estimate(); e > 33*time.Minute {
		t.Errorf("the report takes about %v, want at most 33 minutes", e)
	}
	if e := newPlan(t, CIPlanOptions()).Estimate(); e > 7*time.Minute {
		t.Errorf("the short run takes about %v, want at most 7 minutes", e)
	}
}

func TestChoices(t *testing.T) {
	o := CIPlanOptions()
	o.Experiments = []string{experiment.Sync, experiment.UpdatesRead}
	o.Subjects = []string{subject.ClientGo, subject.Stream}
	p := newPlan(t, o)
	if len(p) != 2 || p[0].Experiment != experiment.Sync || len(p[0].Subjects) != 2 {
		t.Fatalf("got %+v, want both subjects filled", p)
	}
	if p[1].Experiment != experiment.UpdatesRead || len(p[1].Subjects) != 2 {
		t.Errorf("got %+v, want the stream beside what reads, to be taken off it", p[1])
	}
	o.Sizes = []int{2 * onceAbove}
	if s := newPlan(t, o)[1]; s.Rounds != 1 {
		t.Errorf("%s has %d rounds, want 1", s, s.Rounds)
	}
	o.Sizes, o.Subjects, o.Experiments = []int{allBelow}, []string{subject.ClientGo, subject.Object}, []string{experiment.Sync}
	p = newPlan(t, o)
	if len(p) != 2 || p[0].Rounds != 3 || p[0].Subjects[0] != subject.ClientGo || p[1].Rounds != 1 || p[1].Subjects[0] != subject.Object {
		t.Errorf("got %+v, want what matters less measured once", p)
	}
}

// TestJudgedRounds checks that promises which noise could decide are judged by several rounds, however few are asked for.
func TestJudgedRounds(t *testing.T) {
	o := DefaultPlanOptions()
	o.Rounds = 1
	updates := map[string]int{}
	for _, s := range newPlan(t, o) {
		if !slices.Contains(s.Subjects, subject.PackedTrimmed) {
			continue
		}
		switch {
		case s.Experiment == experiment.Sync && s.Objects == report.Fills && s.Size == experiment.Small,
			s.Experiment == experiment.UpdatesKey, s.Experiment == experiment.UpdatesRead:
			if s.Rounds != o.Judged || !slices.Contains(s.Subjects, subject.Stream) || !slices.Contains(s.Subjects, subject.ClientGo) {
				t.Errorf("%s has %d rounds of %v, want %d, with what it is compared with", s, s.Rounds, s.Subjects, o.Judged)
			}
		case s.Experiment == experiment.LatencySlow, s.Experiment == experiment.LatencyFast:
			updates[s.Experiment] = s.Rounds * s.Events
			if s.Rounds < 2 || !slices.Contains(s.Subjects, subject.ClientGo) {
				t.Errorf("%s has %d rounds of %v, want at least two, with what it is compared with", s, s.Rounds, s.Subjects)
			}
		}
	}
	for name, count := range updates {
		if count < 4_000 {
			t.Errorf("one in a thousand of %d updates of %s is too few", count, name)
		}
	}
	if len(updates) != 2 {
		t.Errorf("latencies of %v are measured, want of few updates in a second and of many", updates)
	}
}

func TestRefused(t *testing.T) {
	tests := map[string]func(*PlanOptions){
		"no sizes":             func(o *PlanOptions) { o.Sizes = nil },
		"no rounds":            func(o *PlanOptions) { o.Rounds = 0 },
		"unknown experiment":   func(o *PlanOptions) { o.Experiments = []string{"nonsense"} },
		"unknown subject":      func(o *PlanOptions) { o.Subjects = []string{"nonsense"} },
		"not enough to update": func(o *PlanOptions) { o.UpdateObjects = o.Updates - 1 },
		"unknown family":       func(o *PlanOptions) { o.Families = []string{"nonsense"} },
		"too large a burst":    func(o *PlanOptions) { o.Burst = o.UpdateObjects + 1 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			o := CIPlanOptions()
			change(&o)
			if _, err := NewPlan(o); err == nil {
				t.Error("there is no error")
			}
		})
	}
}
