package report

import "testing"

func TestBetween(t *testing.T) {
	tests := map[string]struct {
		over, under []float64
		low, high   float64
	}{
		"round by round":     {[]float64{10, 30, 40}, []float64{1, 2, 5}, 8, 15},
		"other rounds":       {[]float64{10, 20}, []float64{5}, 2, 4},
		"one round":          {[]float64{10}, []float64{5}, 0, 0},
		"nothing to divide":  {[]float64{10, 20}, []float64{5, 0}, 0, 0},
		"nothing is missing": {nil, []float64{5, 6}, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if low, high := between(tt.over, tt.under); low != tt.low || high != tt.high {
				t.Errorf("got %v to %v, want %v to %v", low, high, tt.low, tt.high)
			}
		})
	}
}

// TestRoundsOfPromises checks that a promise tells how far its rounds lie apart, what is taken off included, and that
// what was pooled takes the place of medians.
func TestRoundsOfPromises(t *testing.T) {
	r := &Result{}
	for round, costs := range []map[string]float64{{"base": 90, "us": 30, "floor": 10}, {"base": 100, "us": 25, "floor": 10}} {
		for who, cost := range costs {
			r.Add("e", "small", 10, who, map[string]float64{"cost": cost, "p": float64(round)})
		}
	}
	key := func(who string) Key { return Key{Experiment: "e", Subject: who, Metric: "cost"} }
	o := Promise{Over: key("base"), Under: key("us"), Beyond: key("floor"), Target: 4}.judge(r)
	if o.Low != 4 || o.High != 6 || o.Ratio != 85/17.5 || measured(o) != "4.86× (4.00–6.00)" {
		t.Errorf("got %v, from %v to %v, written %q; want 4.86, from 4 to 6", o.Ratio, o.Low, o.High, measured(o))
	}
	if o := (Promise{Over: key("us"), Absolute: true, AtMost: true, Target: 40}).judge(r); o.Low != 25 || o.High != 30 {
		t.Errorf("what is absolute is from %v to %v, want 25 to 30", o.Low, o.High)
	}
	r.Pool("e", "small", 10, "us", map[string]float64{"p": 0.75, "unknown": 1})
	pooled := Key{Experiment: "e", Size: "small", Objects: 10, Subject: "us", Metric: "p"}
	if f, _ := r.Get(pooled); f.Median != 0.75 || len(f.Values) != 2 {
		t.Errorf("got %+v, want what was pooled beside both rounds", f)
	}
}
