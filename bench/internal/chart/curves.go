package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Curves shows how values change with another one. Both axes are logarithmic, so that what is twice as much looks the same
// everywhere.
type Curves struct {
	Title string
	// X says what the horizontal axis has.
	X     string
	Lines []Line
	// XText and YText write the values at the axes.
	XText, YText func(float64) string
}

// Line is one curve; its points are in the order of X, and positive.
type Line struct {
	Name string
	// Ours makes it stand out.
	Ours   bool
	Points []Point
}

// Point is a point of a curve.
type Point struct{ X, Y float64 }

// shapes tell curves apart where colours do not.
var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{}}

// SVG draws the curves.
func (c Curves) SVG(theme Theme) ([]byte, error) {
	p := newPlot(c.Title, theme)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = theme.faint, theme.faint
	p.Add(grid)
	legend := newLegend(theme)
	ours, peers := 0, 0
	for _, l := range c.Lines {
		points := make(plotter.XYs, len(l.Points))
		for k, point := range l.Points {
			points[k] = plotter.XY(point)
		}
		line, scatter, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		if l.Ours {
			line.Color, line.Width = theme.ours[ours%len(theme.ours)], vg.Length(2.5)
			scatter.Shape = shapes[ours%len(shapes)]
			ours++
		} else {
			line.Color, line.Width = theme.peers[peers%len(theme.peers)], vg.Length(1.5)
			line.Dashes = []vg.Length{6, 3}
			scatter.Shape = shapes[peers%len(shapes)]
			peers++
		}
		scatter.Color, scatter.Radius = line.Color, 4
		p.Add(line, scatter)
		legend.Add(l.Name, line, scatter)
	}
	p.X.Label.Text = c.X
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = written{c.XText}, written{c.YText}
	p.Y.Min /= 1.3
	p.Y.Max *= 1.3
	return render(p, &legend, curvesTall, vg.Length(legendRow*len(c.Lines)))
}

// newLegend returns the legend that goes below a plot, where it hides no curve.
func newLegend(theme Theme) plot.Legend {
	legend := plot.NewLegend()
	legend.TextStyle.Font, legend.TextStyle.Color = sized(textSize), theme.ink
	legend.Top, legend.Left = true, true
	legend.ThumbnailWidth = 36
	legend.Padding = 4
	return legend
}

// written marks 1, 2 and 5 times each power of ten.
type written struct{ text func(float64) string }

// Ticks implements plot.Ticker.
func (w written) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for power := 1e-9; power <= high; power *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if value := n * power; value >= low*0.999 && value <= high*1.001 {
				ticks = append(ticks, plot.Tick{Value: value, Label: w.text(value)})
			}
		}
	}
	return ticks
}
