package report

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAdd(t *testing.T) {
	var r Result
	r.Add("sync", "small", 10, "a", map[string]float64{"y": 4, "x": 1})
	r.Add("sync", "small", 10, "b", map[string]float64{"x": 7})
	r.Add("sync", "small", 10, "a", map[string]float64{"x": 3})
	key := Key{Experiment: "sync", Size: "small", Objects: 10, Subject: "a", Metric: "x"}
	y, b := key, key
	y.Metric, b.Subject = "y", "b"
	want := []Figure{
		{Key: key, Values: []float64{1, 3}, Median: 2},
		{Key: y, Values: []float64{4}, Median: 4},
		{Key: b, Values: []float64{7}, Median: 7},
	}
	if diff := cmp.Diff(want, r.Figures); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if f, ok := r.Get(key); !ok || len(f.Values) != 2 {
		t.Errorf("Get() = %v, %v, want a figure of two rounds", f, ok)
	}
	key.Objects = 11
	if f, ok := r.Get(key); ok {
		t.Errorf("Get() for another number of objects = %v, want none", f)
	}
}

func TestReadWrite(t *testing.T) {
	r := &Result{
		Started:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Took:     "1m30s",
		Machine:  Machine{CPU: "a processor", Cores: 2},
		Failures: []string{"one"},
	}
	r.Add("sync", "small", 10, "a", map[string]float64{"x": 0.25})
	path := filepath.Join(t.TempDir(), "result.json")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadResult(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("the result after reading (-want +got):\n%s", diff)
	}
}

func TestProcField(t *testing.T) {
	const file = "processor\t: 0\nmodel name\t: Some: CPU\n\nprocessor\t: 1\nmodel name\t: Other\n"
	if got := procField([]byte(file), "model name"); got != "Some: CPU" {
		t.Errorf("the model is %q, want that of the first processor", got)
	}
	if got := procField([]byte(file), "model"); got != "" {
		t.Errorf("procField() = %q for the prefix of a name, want empty", got)
	}
}
