package report

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"time"
)

// Result holds everything that a run measured. The zero value is empty and usable. It is not safe for
// concurrent use.
type Result struct {
	Started time.Time `json:"started"`
	// Took is the duration of the run, such as 18m22s.
	Took    string  `json:"took"`
	Machine Machine `json:"machine"`
	// Figures are in the order in which they were first measured.
	Figures []Figure `json:"figures"`
	// Failures are the measurements that failed, with their errors.
	Failures []string `json:"failures,omitempty"`
}

// Key identifies a figure.
type Key struct {
	Experiment string `json:"experiment"`
	// Size is the size of the objects: "small", "large" or "pods".
	Size string `json:"size"`
	// Objects is the number of objects.
	Objects int    `json:"objects"`
	Subject string `json:"subject"`
	// Metric ends with its unit: "cpu_us_per_object".
	Metric string `json:"metric"`
}

// Figure is one measurement, repeated in several rounds.
type Figure struct {
	Key
	// Values has one element for each round, in order.
	Values []float64 `json:"values"`
	// Median is the median of Values, or the value passed to Pool.
	Median float64 `json:"median"`
}

// Add adds the metrics of one round.
func (r *Result) Add(experiment, size string, objects int, subject string, metrics map[string]float64) {
	for _, metric := range slices.Sorted(maps.Keys(metrics)) {
		key := Key{Experiment: experiment, Size: size, Objects: objects, Subject: subject, Metric: metric}
		i := r.index(key)
		if i < 0 {
			i = len(r.Figures)
			r.Figures = append(r.Figures, Figure{Key: key})
		}
		f := &r.Figures[i]
		f.Values = append(f.Values, metrics[metric])
		f.Median = median(f.Values)
	}
}

// Pool replaces the medians of figures. A high quantile of all rounds' updates together is more exact than
// the median of the rounds' quantiles.
func (r *Result) Pool(experiment, size string, objects int, subject string, metrics map[string]float64) {
	for metric, value := range metrics {
		key := Key{Experiment: experiment, Size: size, Objects: objects, Subject: subject, Metric: metric}
		if i := r.index(key); i >= 0 {
			r.Figures[i].Median = value
		}
	}
}

// Get returns the figure of a key, and whether it exists.
func (r *Result) Get(key Key) (Figure, bool) {
	i := r.index(key)
	if i < 0 {
		return Figure{}, false
	}
	return r.Figures[i], true
}

func (r *Result) index(key Key) int {
	return slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Key == key })
}

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
