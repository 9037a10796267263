package report

// Key says what a figure is about.
type Key struct {
	// Experiment is what was done, as "sync".
	Experiment string `json:"experiment"`
	// Size is the size of the objects, "small" or "large".
	Size string `json:"size"`
	// Objects is how many objects there were.
	Objects int `json:"objects"`
	// Subject is who did it.
	Subject string `json:"subject"`
	// Metric is what was measured, with its unit as the last part: "cpu_us_per_object".
	Metric string `json:"metric"`
}

// Figure is one measurement, made in several rounds.
type Figure struct {
	Key
	// Values has one element for each round, in order.
	Values []float64 `json:"values"`
	// Median is that of Values.
	Median float64 `json:"median"`
}

// Spread is the difference of the extremes as a share of the median.
func (f Figure) Spread() float64 { return Spread(f.Values) }
