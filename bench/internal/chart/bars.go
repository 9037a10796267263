package chart

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Bars compares values from 0 on, one below the other.
type Bars struct {
	Title string
	Rows  []Bar
}

// Bar is a value with its name, and how it is written.
type Bar struct {
	Name, Text string
	Value      float64
	// Ours makes it stand out.
	Ours bool
}

// SVG draws the bars.
func (b Bars) SVG(theme Theme) ([]byte, error) {
	p := newPlot(b.Title, theme)
	rows := slices.Clone(b.Rows)
	slices.Reverse(rows) // the vertical axis goes up
	ours, peers := make(plotter.Values, len(rows)), make(plotter.Values, len(rows))
	texts := plotter.XYLabels{}
	var names []string
	most := 0.0
	for k, row := range rows {
		names = append(names, row.Name)
		most = max(most, row.Value)
		texts.XYs = append(texts.XYs, plotter.XY{X: row.Value, Y: float64(k)})
		texts.Labels = append(texts.Labels, row.Text)
		if row.Ours {
			ours[k] = row.Value
		} else {
			peers[k] = row.Value
		}
	}
	for _, part := range []struct {
		values plotter.Values
		color  color.Color
	}{{ours, theme.ours[0]}, {peers, theme.peers[0]}} {
		chart, err := plotter.NewBarChart(part.values, rowHeight*0.7)
		if err != nil {
			return nil, err
		}
		chart.Horizontal, chart.Color, chart.LineStyle.Width = true, part.color, 0
		p.Add(chart)
	}
	labels, err := plotter.NewLabels(texts)
	if err != nil {
		return nil, err
	}
	for k := range labels.TextStyle {
		labels.TextStyle[k].Font, labels.TextStyle[k].Color = sized(textSize), theme.ink
		labels.TextStyle[k].YAlign = -0.4 // on the middle of the bar
	}
	labels.Offset.X = 6
	p.Add(labels)
	p.NominalY(names...)
	p.Y.Tick.Length, p.Y.LineStyle.Width = 0, 0
	p.HideX()
	p.X.Min, p.X.Max = 0, most*1.12
	return render(p, nil, vg.Length(rowHeight*len(rows)+60), 0)
}
