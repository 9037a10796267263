package chart

import (
	"bytes"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// newPlot returns an empty plot in the colours of a theme.
func newPlot(title string, theme Theme) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil // the page's
	p.Title.Text = title
	p.Title.Padding = 10
	p.Title.TextStyle.Font, p.Title.TextStyle.Color = sized(titleSize), theme.ink
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = theme.faint, theme.faint
		axis.Label.TextStyle.Font, axis.Label.TextStyle.Color = sized(textSize), theme.ink
		axis.Tick.Label.Font, axis.Tick.Label.Color = sized(textSize), theme.ink
	}
	return p
}

// render returns a plot as SVG, with a legend (nil: none) below it.
func render(p *plot.Plot, legend *plot.Legend, height, legendHeight vg.Length) ([]byte, error) {
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height+legendHeight))
	inside := draw.Crop(draw.New(canvas), 8, -8, 8, -8)
	p.Draw(draw.Crop(inside, 0, 0, legendHeight, 0))
	if legend != nil {
		legend.Draw(draw.Crop(inside, 0, 0, 0, -(height - 16)))
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	// Arial and Helvetica are as wide, so that texts stay in their places.
	return bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), nil
}
