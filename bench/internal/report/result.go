package report

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"time"
)

// Result is everything that a run found out. The zero value is empty and usable. It is not safe for concurrent
// use.
type Result struct {
	// Started is when the run began, and Took how long it was.
	Started time.Time `json:"started"`
	Took    Duration  `json:"took"`
	Machine Machine   `json:"machine"`
	// Noise is missing where the system does not tell.
	Noise *Noise `json:"noise,omitempty"`
	// Figures are in the order in which they were first measured.
	Figures []Figure `json:"figures"`
	// Failures says what could not be measured, and why.
	Failures []string `json:"failures,omitempty"`
}

// Duration is written as text.
type Duration time.Duration

// String implements fmt.Stringer.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// Add adds the values of one round.
func (r *Result) Add(experiment, size string, objects int, subject string, metrics map[string]float64) {
	for _, metric := range slices.Sorted(maps.Keys(metrics)) {
		key := Key{Experiment: experiment, Size: size, Objects: objects, Subject: subject, Metric: metric}
		i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Key == key })
		if i < 0 {
			i = len(r.Figures)
			r.Figures = append(r.Figures, Figure{Key: key})
		}
		f := &r.Figures[i]
		f.Values = append(f.Values, metrics[metric])
		f.Median = median(f.Values)
	}
}

// Pool sets what figures come to, in place of the medians of their rounds: a quantile that only a few updates of a round are
// beyond is that of all rounds' updates together.
func (r *Result) Pool(experiment, size string, objects int, subject string, metrics map[string]float64) {
	for metric, value := range metrics {
		key := Key{Experiment: experiment, Size: size, Objects: objects, Subject: subject, Metric: metric}
		if i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Key == key }); i >= 0 {
			r.Figures[i].Median = value
		}
	}
}

// Get returns the figure of a key, and whether there is one.
func (r *Result) Get(key Key) (Figure, bool) {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Key == key })
	if i < 0 {
		return Figure{}, false
	}
	return r.Figures[i], true
}

// Select returns the figures for which the function holds.
func (r *Result) Select(holds func(Figure) bool) []Figure {
	var selected []Figure
	for _, f := range r.Figures {
		if holds(f) {
			selected = append(selected, f)
		}
	}
	return selected
}

// ReadResult reads a result from a file.
func ReadResult(path string) (*Result, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	return r, json.Unmarshal(data, r)
}

// Write writes the result to a file.
func (r *Result) Write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o666)
}

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
	// Median is that of Values, or what Pool was given.
	Median float64 `json:"median"`
}

// Spread is the difference of the extremes as a share of the median.
func (f Figure) Spread() float64 { return spread(f.Values) }
