package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/chart"
	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// drawing is a chart that can be drawn in a theme.
type drawing interface {
	SVG(chart.Theme) ([]byte, error)
}

// picture is a chart of the report.
type picture struct {
	// name is that of its files, text what it shows, for those who can't see it.
	name, text string
	drawing    drawing
}

// chartsOf returns the charts that there are figures for.
func chartsOf(r *Result) []picture {
	var all []picture
	add := func(p picture, found bool) {
		if found {
			all = append(all, p)
		}
	}
	add(bars(r, "fill-cpu", experiment.Sync, experiment.CPU, "Client CPU until %s objects are cached"))
	add(bars(r, "fill-heap", experiment.Sync, experiment.HeapPerObject, "Live heap per object, with %s objects"))
	add(bars(r, "fill-peak", experiment.Sync, experiment.PeakRSS, "Peak memory of filling a cache with %s objects"))
	add(curves(r, "growth-cpu", experiment.Sync, experiment.CPUPerObject, "objects", "Client CPU until synced, per object"))
	add(curves(r, "growth-heap", experiment.Sync, experiment.HeapPerObject, "objects", "Live heap, per object"))
	add(curves(r, "scale-cpu", experiment.Scale, experiment.CPUPerObject, "objects", "Client CPU until synced, per object"))
	add(curves(r, "scale-heap", experiment.Scale, experiment.HeapPerObject, "objects", "Live heap, per object"))
	add(curves(r, "scale-relist", experiment.Scale, experiment.RelistCPU, "objects", "Client CPU of listing again, per object"))
	add(curves(r, "types-memory", experiment.Types, experiment.TypeMemory, "types", "Memory of a type"))
	add(curves(r, "types-cpu", experiment.Types, experiment.CPU, "types", "Client CPU until all types are synced"))
	add(distribution(r, "latency-slow", experiment.LatencySlow, "From the server's write to the handler's call, 200 updates a second"))
	add(distribution(r, "latency-fast", experiment.LatencyFast, "From the server's write to the handler's call, 5,000 updates a second"))
	add(bars(r, "update-cpu", experiment.UpdatesKey, experiment.CPUPerEvent, "Client CPU per update, at a steady rate, with %s objects"))
	add(bars(r, "update-latency", experiment.UpdatesKey, experiment.LatencyP99, "Time within which 99 %% of updates reach the handler, with %s objects"))
	add(managerBars(r, "manager-cpu", experiment.CPU, "CPU of a manager until everything is reconciled"))
	add(managerBars(r, "manager-peak", experiment.PeakRSS, "Peak memory of a manager until everything is reconciled"))
	return all
}

// managerBars compares managers by one metric: for each form of objects, where most of them were measured, the one on
// controller-runtime's cache with the one on ours.
func managerBars(r *Result, name, metric, title string) (picture, bool) {
	b := chart.Bars{Title: title}
	for _, form := range []struct{ experiment, size, name string }{
		{experiment.ManageUnstructured, experiment.Small, "%s unstructured"},
		{experiment.ManageTyped, experiment.Small, "%s typed"},
		{experiment.ManageMetadata, experiment.Small, "%s as metadata"},
		{experiment.ManageTypes, experiment.Many, "%s of " + fmt.Sprint(experiment.ManyTypes) + " types"},
	} {
		counts := objectCounts(r, form.experiment, form.size)
		if len(counts) == 0 {
			continue
		}
		t := table{experiment: form.experiment, size: form.size, objects: counts[len(counts)-1]}
		c := column{metric: metric, base: experiment.StockManager}
		for _, who := range []struct{ subject, name string }{
			{experiment.StockManager, "controller-runtime's cache"}, {experiment.OursManager, "crdcache"},
		} {
			if value, ok := t.value(r, who.subject, c); ok {
				b.Rows = append(b.Rows, chart.Bar{
					Name: fmt.Sprintf(form.name, commas(int64(t.objects))) + ", " + who.name, Value: value,
					Text: t.cell(r, who.subject, c), Ours: who.subject == experiment.OursManager,
				})
			}
		}
	}
	return showing(name, b), len(b.Rows) > 1
}

// showing is a picture of bars, with what they say as its text.
func showing(name string, b chart.Bars) picture {
	var said []string
	for _, row := range b.Rows {
		said = append(said, row.Name+" "+row.Text)
	}
	return picture{name: name, text: b.Title + ": " + strings.Join(said, "; "), drawing: b}
}

// bars compares all subjects of an experiment by one metric, where most of them were measured.
func bars(r *Result, name, of, metric, title string) (picture, bool) {
	objects, most := 0, 1
	for _, n := range objectCounts(r, of, experiment.Small) {
		measured := len(r.Select(func(f Figure) bool {
			return f.Experiment == of && f.Size == experiment.Small && f.Objects == n && f.Metric == metric
		}))
		if measured >= most {
			objects, most = n, measured
		}
	}
	b := chart.Bars{Title: fmt.Sprintf(title, commas(int64(objects)))}
	t := table{experiment: of, size: experiment.Small, objects: objects}
	for _, s := range subject.All() {
		c := column{metric: metric, base: subject.ClientGo}
		if value, ok := t.value(r, s.Name, c); ok {
			b.Rows = append(b.Rows, chart.Bar{Name: s.Title, Value: value, Text: t.cell(r, s.Name, c), Ours: s.Ours})
		}
	}
	return showing(name, b), len(b.Rows) > 1
}

// curves shows how a metric of an experiment changes with the number of what it is about, of the subjects for which that
// was measured. The bare stream, whose heap is none of its objects, is left out.
func curves(r *Result, name, of, metric, what, title string) (picture, bool) {
	c := chart.Curves{
		Title: title, X: what,
		XText: func(n float64) string { return commas(int64(n)) },
		YText: func(value float64) string { return quantity(metric, value) },
	}
	counts := objectCounts(r, of, experiment.Small)
	for _, s := range subject.All() {
		if s.Name == subject.Stream {
			continue
		}
		l := chart.Line{Name: s.Title, Ours: s.Ours}
		for _, n := range counts {
			f, ok := r.Get(Key{Experiment: of, Size: experiment.Small, Objects: n, Subject: s.Name, Metric: metric})
			if ok && f.Median > 0 {
				l.Points = append(l.Points, chart.Point{X: float64(n), Y: f.Median})
			}
		}
		if len(l.Points) > 1 {
			c.Lines = append(c.Lines, l)
		}
	}
	return picture{name: name, text: title + ", by the number of " + what + "; the table below has the numbers", drawing: c}, len(c.Lines) > 0
}

// embed writes the charts of these names that there are, in folder, as the page's brightness asks for.
func embed(b *strings.Builder, r *Result, folder string, names ...string) {
	for _, p := range chartsOf(r) {
		if !slices.Contains(names, p.name) {
			continue
		}
		fmt.Fprintf(b, `<picture>
  <source media="(prefers-color-scheme: dark)" srcset="%[1]s/%[2]s-dark.svg">
  <img alt="%[3]s" src="%[1]s/%[2]s-light.svg">
</picture>

`, folder, p.name, p.text)
	}
}

// writeCharts writes all charts to a folder, each for light and for dark pages.
func writeCharts(folder string, r *Result) error {
	all := chartsOf(r)
	if len(all) == 0 {
		return nil
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for _, p := range all {
		for _, theme := range chart.Themes() {
			svg, err := p.drawing.SVG(theme)
			if err != nil {
				return fmt.Errorf("drawing %s: %w", p.name, err)
			}
			if err := os.WriteFile(filepath.Join(folder, p.name+"-"+theme.Name+".svg"), svg, 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}
