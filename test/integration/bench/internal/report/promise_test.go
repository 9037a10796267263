package report

import (
	"testing"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

// measuredResult has figures of "us" and "base" at 1,000 and 10,000 small objects, and only of "us" at
// 50,000.
func measuredResult() *Result {
	r := &Result{}
	add := func(objects int, subject string, cost float64) {
		r.Add("sync", experiment.Small, objects, subject, map[string]float64{"cost": cost})
	}
	add(1_000, "base", 50)
	add(1_000, "us", 40)
	add(1_000, "floor", 20)
	add(10_000, "us", 10)
	add(10_000, "base", 60)
	add(50_000, "us", 12)
	r.Add("sync", experiment.Large, 90_000, "base", map[string]float64{"cost": 1})
	r.Add("sync", experiment.Large, 90_000, "us", map[string]float64{"cost": 1})
	return r
}

func TestJudge(t *testing.T) {
	us := Key{Experiment: "sync", Subject: "us", Metric: "cost"}
	base := Key{Experiment: "sync", Subject: "base", Metric: "cost"}
	other := Key{Experiment: "sync", Subject: "other", Metric: "cost"}
	tests := map[string]struct {
		promise               Promise
		ratio                 float64
		objects               int
		measured, met, broken bool
	}{
		"met, at the most objects that both have": {
			Promise{Over: base, Under: us, Target: 6, Margin: 3}, 6, 10_000, true, true, false},
		"missed": {Promise{Over: base, Under: us, Target: 7, Margin: 3}, 6, 10_000,
			true, false, false},
		"broken": {Promise{Over: base, Under: us, Target: 9, Margin: 6.5}, 6, 10_000,
			true, false, true},
		"not guarded": {Promise{Over: base, Under: us, Target: 9}, 6, 10_000, true, false, false},
		"at most": {Promise{Over: base, Under: us, AtMost: true, Target: 6, Margin: 7}, 6, 10_000,
			true, true, false},
		"at most, missed": {Promise{Over: base, Under: us, AtMost: true, Target: 5, Margin: 7}, 6, 10_000,
			true, false, false},
		"at most, broken": {Promise{Over: base, Under: us, AtMost: true, Target: 4, Margin: 5}, 6, 10_000,
			true, false, true},
		"flat from 10,000": {Promise{Over: us, Flat: true, AtMost: true, Target: 1.25}, 1.2, 50_000,
			true, true, false},
		"beyond the floor of both": {
			Promise{Over: base, Under: us, Floor: Key{Experiment: "sync", Subject: "floor", Metric: "cost"},
				Target: 6}, 1.5, 1_000, true, false, false},
		"beyond an unknown floor": {Promise{Over: base, Under: us, Floor: other, Target: 6}, 0, 0,
			false, false, false},
		"large": {Promise{Over: base, Under: us, Size: experiment.Large, Target: 2}, 1, 90_000,
			true, false, false},
		"absolute": {Promise{Over: us, Absolute: true, AtMost: true, Target: 12}, 12, 50_000,
			true, true, false},
		"absolute, missed": {Promise{Over: us, Absolute: true, AtMost: true, Target: 11}, 12, 50_000,
			true, false, false},
		"absolute, beyond an unknown floor": {
			Promise{Over: us, Floor: other, Absolute: true, AtMost: true, Target: 12}, 0, 0,
			false, false, false},
		"absolute, beyond the floor": {
			Promise{Over: us, Floor: us, Absolute: true, AtMost: true, Target: 12}, 0, 50_000,
			true, true, false},
		"absolute, nothing": {Promise{Over: other, Absolute: true, AtMost: true, Target: 11}, 0, 0,
			false, false, false},
		"flat, one size": {Promise{Over: base, Flat: true, AtMost: true, Target: 1.15}, 0, 0,
			false, false, false},
		"nothing to divide": {Promise{Over: base, Under: other, Target: 1, Margin: 1}, 0, 0,
			false, false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := tt.promise.judge(measuredResult())
			if o.Measured != tt.measured || o.Ratio != tt.ratio || o.Objects != tt.objects ||
				o.Met != tt.met || o.Broken != tt.broken {
				t.Errorf("judge() = %+v, want %+v", o, tt)
			}
		})
	}
}

func TestBrokenPromises(t *testing.T) {
	guarded := Promise{Margin: 2}
	tests := map[string]struct {
		outcome Outcome
		want    bool
	}{
		"kept":                    {Outcome{Promise: guarded, Measured: true, Met: true}, false},
		"missed":                  {Outcome{Promise: guarded, Measured: true}, false},
		"broken":                  {Outcome{Promise: guarded, Measured: true, Broken: true}, true},
		"not measured":            {Outcome{Promise: guarded}, true},
		"no margin":               {Outcome{}, false},
		"no margin, not measured": {Outcome{Promise: Promise{Flat: true}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := BrokenPromises([]Outcome{{Promise: guarded, Measured: true, Met: true}, tt.outcome})
			if (len(got) == 1) != tt.want || len(got) > 1 {
				t.Errorf("BrokenPromises() = %v, want the outcome in it: %v", got, tt.want)
			}
		})
	}
}

// TestPromises checks that titles are unique, margins are wide, and subjects exist.
func TestPromises(t *testing.T) {
	type identity struct{ title, subject, peer string }
	seen := map[identity]bool{}
	for _, p := range promises() {
		id := identity{p.Title, p.Subject, p.Peer}
		if seen[id] {
			t.Errorf("%v: duplicate promise", id)
		}
		seen[id] = true
		switch {
		case p.Margin == 0:
		case p.AtMost && p.Margin < 1.25*p.Target, !p.AtMost && p.Margin > 0.8*p.Target:
			t.Errorf("%v: margin %v is too close to target %v for a busy machine", id, p.Margin, p.Target)
		}
		if p.Over.Size != "" || p.Over.Objects != 0 || p.Under.Size != "" || p.Under.Objects != 0 {
			t.Errorf("%v: a key sets Size or Objects", id)
		}
		if p.Absolute && (p.Peer != "" || !p.AtMost) {
			t.Errorf("%v: an absolute promise needs an upper bound, and no peer", id)
		}
		if p.Over.Experiment == experiment.Sync {
			_, known := experiment.FindSubject(p.Subject)
			if _, peer := experiment.FindSubject(p.Peer); !known || !peer && !p.Absolute {
				t.Errorf("%v: unknown subject", id)
			}
		}
	}
}
