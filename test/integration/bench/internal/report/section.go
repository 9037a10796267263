package report

import (
	"cmp"
	_ "embed"
	"slices"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

//go:embed sections.yaml
var sectionsText []byte

// section is one table of the benchmark page. If an experiment was measured with several numbers of objects,
// the table shows one of them (see tableSize).
type section struct {
	Title, Text string
	// Base is the subject that the others are compared with. A ratio of 2× means half the base's cost.
	Base string
	// Size is the size of the objects. Default: small.
	Size string
	// Subjects are the rows. Default: all caches.
	Subjects []string
	Columns  []column
	// Unit is the unit of Figure.Objects. Default: objects.
	Unit string
}

// column is one metric of an experiment.
type column struct {
	Title, Experiment, Metric string
	// Size is the size of the objects. Default: that of the section.
	Size string
	// Chart is the title of a bar chart of the column. Empty means no chart.
	Chart string
}

// pageSections returns the tables of the page.
func pageSections() []section {
	sections := mustParse[[]section](sectionsText)
	for i := range sections {
		s := &sections[i]
		s.Size, s.Unit = cmp.Or(s.Size, experiment.Small), cmp.Or(s.Unit, "objects")
		for k := range s.Columns {
			s.Columns[k].Size = cmp.Or(s.Columns[k].Size, s.Size)
		}
		if s.Subjects == nil {
			s.Subjects = experiment.SubjectNames()
		}
	}
	return sections
}

// tableSize returns the number of objects that the table shows: the one with figures for most subjects, and
// the greatest if several are equal. It uses the first column that has figures. It returns zero if there are
// none.
func (s section) tableSize(r *Result) int {
	counts := map[int]int{}
	best := 0
	for _, c := range s.Columns {
		for _, f := range r.Figures {
			if f.Experiment != c.Experiment || f.Metric != c.Metric || f.Size != c.Size ||
				!slices.Contains(s.Subjects, f.Subject) {
				continue
			}
			counts[f.Objects]++
			if n := counts[f.Objects] - counts[best]; n > 0 || n == 0 && f.Objects > best {
				best = f.Objects
			}
		}
		if best > 0 {
			return best
		}
	}
	return 0
}

// cellFigure returns the figure of a cell. It chooses the number of objects for each column, because the
// columns' experiments may have used different numbers.
func (s section) cellFigure(r *Result, name string, c column) (float64, bool) {
	objectCount := section{Subjects: s.Subjects, Columns: []column{c}}.tableSize(r)
	f, ok := r.Get(Key{Experiment: c.Experiment, Size: c.Size, Objects: objectCount, Subject: name,
		Metric: c.Metric})
	return f.Median, ok
}

// formatCell formats a figure and its ratio to the base's.
func (s section) formatCell(r *Result, name string, c column) string {
	value, ok := s.cellFigure(r, name, c)
	if !ok {
		return missingCell
	}
	text := formatQuantity(c.Metric, value)
	base, ok := s.cellFigure(r, s.Base, c)
	if !ok || name == s.Base || formatDigits(base) == "0" || formatDigits(value) == "0" {
		return text
	}
	return text + " (" + formatRatio(base/value) + ")"
}

// missingCell is the cell of a figure that was not measured.
const missingCell = "–"
