package report

import (
	"bytes"
	_ "embed"
	"html/template"
	"strings"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

//go:embed chart.svg.tmpl
var chartText string

var chartTemplate = template.Must(template.New("chart").Funcs(template.FuncMap{
	"add": func(a, b int) int { return a + b },
}).Parse(chartText))

type chart struct {
	Title, File string
	svg         []byte
}

// bar is one row of a chart. Y and Width are in pixels.
type bar struct {
	Name, Text string
	Ours       bool
	Y, Width   int
}

const (
	barRowHeight = 26
	barsTop      = 40
	barsWidth    = 300 // of the longest bar
)

// draw returns the chart of a column. It returns false if there is nothing to compare.
func (s section) draw(r *Result, c column) (chart, bool) {
	highest := 0.0
	for _, name := range s.Subjects {
		value, _ := s.cellFigure(r, name, c)
		highest = max(highest, value)
	}
	var bars []bar
	for _, name := range s.Subjects {
		value, ok := s.cellFigure(r, name, c)
		if !ok {
			continue
		}
		found, _ := experiment.FindSubject(name)
		bars = append(bars, bar{
			Name: subjectTitle(name), Text: s.formatCell(r, name, c), Ours: found.IsCrdcache,
			Y: barsTop + barRowHeight*len(bars), Width: int(barsWidth * value / highest),
		})
	}
	if len(bars) < 2 {
		return chart{}, false
	}
	var b bytes.Buffer
	err := chartTemplate.Execute(&b, map[string]any{
		"Title": c.Chart, "Bars": bars, "Height": barsTop + barRowHeight*len(bars) + 10,
	})
	if err != nil {
		panic(err) // the template has no input that can fail
	}
	file := strings.ReplaceAll(strings.ToLower(c.Chart), " ", "-") + ".svg"
	return chart{Title: c.Chart, File: file, svg: b.Bytes()}, true
}
