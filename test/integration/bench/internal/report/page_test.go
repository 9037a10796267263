package report

import (
	"encoding/xml"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

// TestPage checks that the page shows figures, promises, charts and failures, and leaves out sections
// without figures.
func TestPage(t *testing.T) {
	r := &Result{
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Machine: Machine{CPU: "a processor", Cores: 2, LoadAverage: "0.25", Kubernetes: "v1.2.3"}, Failures: []string{"sync: broken\nwith details"},
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
