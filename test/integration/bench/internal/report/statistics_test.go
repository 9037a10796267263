package report

import "testing"

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
