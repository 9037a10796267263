package report

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/bench/internal/chart"
	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// TestCharts: a chart needs two to compare, or two points, and shows what the tables say.
func TestCharts(t *testing.T) {
	r := &Result{}
	add := func(objects int, who string, cpu float64) {
		r.Add(experiment.Sync, experiment.Small, objects, who, map[string]float64{experiment.CPU: cpu, experiment.CPUPerObject: cpu * 10})
	}
	names := func() (all []string) {
		for _, p := range chartsOf(r) {
			all = append(all, p.name)
		}
		return all
	}
	add(1_000, subject.ClientGo, 10)
	if got := names(); len(got) > 0 {
		t.Errorf("charts of one figure: %q", got)
	}
	add(1_000, subject.Packed, 2)
	add(50_000, subject.ClientGo, 100)
	if diff := cmp.Diff([]string{"fill-cpu", "growth-cpu"}, names()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	bars := chartsOf(r)[0].drawing.(chart.Bars)
	want := chart.Bars{Title: "Client CPU until 1,000 objects are cached", Rows: []chart.Bar{ // where there are most
		{Name: "client-go dynamicinformer", Value: 10, Text: "10.0 s"},
		{Name: "crdcache, packed", Value: 2, Text: "2.00 s (5.00×)", Ours: true},
	}}
	if diff := cmp.Diff(want, bars); diff != "" {
		t.Errorf("bars (-want +got):\n%s", diff)
	}
	lines := chartsOf(r)[1].drawing.(chart.Curves).Lines
	if diff := cmp.Diff([]chart.Line{{Name: "client-go dynamicinformer", Points: []chart.Point{{X: 1_000, Y: 100}, {X: 50_000, Y: 1_000}}}}, lines); diff != "" {
		t.Errorf("curves (-want +got):\n%s", diff)
	}
}

// TestManagerCharts: of each form the managers are next to each other, and compared with each other.
func TestManagerCharts(t *testing.T) {
	r := &Result{}
	add := func(of string, objects int, who string, cpu float64) {
		size := experiment.Small
		if of == experiment.ManageTypes {
			size = experiment.Many
		}
		r.Add(of, size, objects, who, map[string]float64{experiment.CPU: cpu})
	}
	add(experiment.ManageTyped, 1_000, experiment.OursManager, 1)
	add(experiment.ManageTyped, 50_000, experiment.StockManager, 10)
	add(experiment.ManageTyped, 50_000, experiment.OursManager, 5)
	add(experiment.ManageTypes, 6_000, experiment.OursManager, 3)
	pictures := chartsOf(r)
	if len(pictures) != 1 || pictures[0].name != "manager-cpu" {
		t.Fatalf("%+v", pictures)
	}
	want := []chart.Bar{
		{Name: "50,000 typed, controller-runtime's cache", Value: 10, Text: "10.0 s"},
		{Name: "50,000 typed, crdcache", Value: 5, Text: "5.00 s (2.00×)", Ours: true},
		{Name: "6,000 of 300 types, crdcache", Value: 3, Text: "3.00 s", Ours: true},
	}
	if diff := cmp.Diff(want, pictures[0].drawing.(chart.Bars).Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if page := markdown(r, "charts"); strings.Count(page, `src="charts/manager-cpu-light.svg"`) != 1 {
		t.Errorf("the page does not show it once:\n%s", page)
	}
}

// TestDocs writes the page and the charts from the results in docs: the page there shows all charts, and those are there.
func TestDocs(t *testing.T) {
	const docs = "../../../docs"
	r, err := ReadResult(filepath.Join(docs, "benchmarks.json"))
	if err != nil {
		t.Fatal(err)
	}
	written := t.TempDir()
	if err := WriteMarkdown(filepath.Join(written, "benchmarks.md"), r); err != nil {
		t.Fatal(err)
	}
	got, want := chartsIn(t, docs), chartsIn(t, written)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("charts in docs/benchmarks (-wanted +there):\n%s\nbench -from ../docs/benchmarks.json -report ../docs/benchmarks.md writes them", diff)
	}
	for _, folder := range []string{docs, written} {
		page, err := os.ReadFile(filepath.Join(folder, "benchmarks.md"))
		if err != nil {
			t.Fatal(err)
		}
		var linked []string
		for _, match := range regexp.MustCompile(`(?:src|srcset)="benchmarks/([^"]+)"`).FindAllStringSubmatch(string(page), -1) {
			linked = append(linked, match[1])
		}
		slices.Sort(linked)
		if diff := cmp.Diff(want, linked); diff != "" {
			t.Errorf("charts on the page (-wanted +there):\n%s", diff)
		}
		if strings.Contains(string(page), "%!") {
			t.Error("the page has a broken text")
		}
	}
}

func chartsIn(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "benchmarks", "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// TestDistribution: the points are in the order of the shares, each nine as far from the one before.
func TestDistribution(t *testing.T) {
	r := &Result{}
	r.Add(experiment.LatencyFast, experiment.Small, 1_000, subject.ClientGo, map[string]float64{
		experiment.LatencyP50: 1, experiment.LatencyP90: 2, experiment.LatencyP99: 3, experiment.LatencyP999: 4,
	})
	shown, found := distribution(r, "latency", experiment.LatencyFast, "Latency")
	if !found {
		t.Fatal("there is no chart")
	}
	curves := shown.drawing.(chart.Curves)
	var shares []string
	var values []float64
	for _, p := range curves.Lines[0].Points {
		shares, values = append(shares, curves.XText(p.X)), append(values, p.Y)
	}
	if diff := cmp.Diff([]string{"50 %", "90 %", "99 %", "99.9 %"}, shares); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1, 2, 3, 4}, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if _, err := curves.SVG(chart.Themes()[0]); err != nil {
		t.Error(err)
	}
}
