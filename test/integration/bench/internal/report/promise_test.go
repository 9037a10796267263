package report

import (
	"encoding/xml"
	"os"
	"strings"
	"testing"
	"time"

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
		"missed":      {Promise{Over: base, Under: us, Target: 7, Margin: 3}, 6, 10_000, true, false, false},
		"broken":      {Promise{Over: base, Under: us, Target: 9, Margin: 6.5}, 6, 10_000, true, false, true},
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
			_, known := experiment.FindSubject(strings.TrimSuffix(p.Subject, "-next"))
			_, peer := experiment.FindSubject(strings.TrimSuffix(p.Peer, "-next"))
			if !known || !peer && !p.Absolute {
				t.Errorf("%v: unknown subject", id)
			}
		}
	}
}

// TestPage checks that the page shows figures, promises, charts and failures, and leaves out sections
// without figures.
func TestPage(t *testing.T) {
	r := &Result{
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Machine: Machine{CPU: "a processor", Cores: 2, LoadAverage: "0.25", Kubernetes: "v1.2.3",
			ClientGo: "v0.4.5", ControllerRuntime: "v0.6.7"}, Failures: []string{"sync: broken\nwith details"},
	}
	for name, cpu := range map[string]float64{experiment.ClientGo: 30, experiment.PackedTrimmed: 2} {
		r.Add(experiment.Sync, experiment.Small, 1_000, name, map[string]float64{experiment.CPU: cpu})
	}
	text, charts, err := renderPage(r, "charts")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 January 2026", "a processor", "v1.2.3", "load average 0.25", "At 1,000 objects.",
		"decodes nothing.\n\n## Filling a cache\n\n",
		"|crdcache, packed, pruned|2.00 s (15.0×)|", "|≥ 14.0×|15.0×|met|", "- sync: broken\n",
		"(charts/client-cpu-until-synced.svg)",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"with details", "## Latency", "%!"} {
		if strings.Contains(string(text), unwanted) {
			t.Errorf("the page has %q", unwanted)
		}
	}
	if len(charts) != 1 {
		t.Fatalf("%d charts, want 1", len(charts))
	}
	svg := charts[0].svg
	for _, want := range []string{"Client CPU until synced", "client-go", "2.00 s (15.0×)"} {
		if !strings.Contains(string(svg), ">"+want+"<") || xml.Unmarshal(svg, new(struct{})) != nil {
			t.Errorf("the chart lacks %q, or is malformed:\n%s", want, svg)
		}
	}
	r.Machine.Kubernetes = ""
	if _, _, err := renderPage(r, "charts"); err == nil || !strings.Contains(err.Error(), "API server") {
		t.Errorf("renderPage() without the server's version = %v, want an error that names the API server", err)
	}
}

// TestPublishedPage checks that docs/benchmarks.md shows all charts and names all versions.
func TestPublishedPage(t *testing.T) {
	text, err := os.ReadFile("../../../../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "](benchmarks/"); n != 3 || strings.Contains(string(text), "unknown") {
		t.Errorf("the page has %d charts, want 3, or an unknown version", n)
	}
}

// TestRoundsOfPromises checks the extremes of a promise's rounds after its floor is subtracted, and pooled
// figures.
func TestRoundsOfPromises(t *testing.T) {
	r := &Result{}
	for round, costs := range []map[string]float64{{"base": 90, "us": 30, "floor": 10},
		{"base": 100, "us": 25, "floor": 10}} {
		for subject, cost := range costs {
			r.Add("e", "small", 10, subject, map[string]float64{"cost": cost, "p": float64(round)})
		}
	}
	key := func(subject string) Key { return Key{Experiment: "e", Subject: subject, Metric: "cost"} }
	o := Promise{Over: key("base"), Under: key("us"), Floor: key("floor"), Target: 4}.judge(r)
	if o.Low != 4 || o.High != 6 || o.Ratio != 85/17.5 || o.formatMeasured() != "4.86× (4.00–6.00)" {
		t.Errorf("judge() = the ratio %v, from %v to %v, written %q; want 4.86, from 4 to 6", o.Ratio, o.Low,
			o.High, o.formatMeasured())
	}
	if o := (Promise{Over: key("us"), Absolute: true, AtMost: true, Target: 40}).judge(r); o.Low != 25 ||
		o.High != 30 {
		t.Errorf("the absolute figure is from %v to %v, want 25 to 30", o.Low, o.High)
	}
	r.Pool("e", "small", 10, "us", map[string]float64{"p": 0.75, "unknown": 1})
	pooled := Key{Experiment: "e", Size: "small", Objects: 10, Subject: "us", Metric: "p"}
	if f, _ := r.Get(pooled); f.Median != 0.75 || len(f.Values) != 2 {
		t.Errorf("Get() after Pool = %+v, want the pooled median and both rounds", f)
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i // unsorted
	}
	tests := map[string]struct {
		values []int
		q      float64
		want   int
	}{
		"none":              {nil, 0.5, 0},
		"one":               {[]int{7}, 0.99, 7},
		"median":            {hundred, 0.50, 50},
		"99 of 100":         {hundred, 0.99, 99},
		"least":             {hundred, 0, 1},
		"greatest":          {hundred, 1, 100},
		"99 % of a few":     {[]int{3, 1, 2}, 0.99, 3},
		"nearest, not next": {[]int{1, 2, 3, 4}, 0.5, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Quantile(tt.values, tt.q); got != tt.want {
				t.Errorf("Quantile(%v, %v) is %v, want %v", tt.values, tt.q, got, tt.want)
			}
		})
	}
	if hundred[0] != 100 {
		t.Error("Quantile sorted the values of its caller")
	}
}
