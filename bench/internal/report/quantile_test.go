package report

import "testing"

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

func TestMedianAndSpread(t *testing.T) {
	tests := map[string]struct {
		values         []float64
		median, spread float64
	}{
		"none":  {nil, 0, 0},
		"one":   {[]float64{4}, 4, 0},
		"two":   {[]float64{5, 3}, 4, 0.5},
		"three": {[]float64{9, 1, 4}, 4, 2},
		"zeros": {[]float64{0, 0}, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := median(tt.values); got != tt.median {
				t.Errorf("Median is %v, want %v", got, tt.median)
			}
			if got := spread(tt.values); got != tt.spread {
				t.Errorf("Spread is %v, want %v", got, tt.spread)
			}
		})
	}
}
