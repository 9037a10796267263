package report

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
