package report

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/crdcache/crdcache/bench/internal/chart"
	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// distribution shows the latencies of an experiment: the horizontal axis has the share of updates, so that each nine takes
// as much room, and the vertical one the time within which so many have come.
func distribution(r *Result, name, of, title string) (picture, bool) {
	c := chart.Curves{
		Title: title, X: "share of the updates",
		XText: shareText,
		YText: func(value float64) string { return quantity(experiment.LatencyP50, value) },
	}
	for _, s := range subject.All() {
		l := chart.Line{Name: s.Title, Ours: s.Ours}
		for metric, q := range experiment.Latencies() {
			for _, f := range r.Select(func(f Figure) bool { return f.Experiment == of && f.Subject == s.Name && f.Metric == metric }) {
				l.Points = append(l.Points, chart.Point{X: 1 / (1 - q), Y: f.Median})
			}
		}
		slices.SortFunc(l.Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
		if len(l.Points) > 1 {
			c.Lines = append(c.Lines, l)
		}
	}
	return picture{name: name, text: title + ", by the share of updates; the table below has the numbers", drawing: c}, len(c.Lines) > 0
}

// shareText writes the share of which one in x is left over.
func shareText(x float64) string {
	return strconv.FormatFloat(100*(1-1/x), 'g', 5, 64) + " %"
}
