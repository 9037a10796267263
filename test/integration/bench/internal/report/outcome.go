package report

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

//go:embed titles.yaml.fmt
var titlesFormat string

// titles names the subjects that are not caches.
var titles = mustParse[map[string]string](fmt.Appendf(nil, titlesFormat, experiment.Replicas,
	formatThousands(experiment.RestartChanges)))

func subjectTitle(name string) string {
	if t, ok := titles[name]; ok {
		return t
	}
	if found, ok := experiment.FindSubject(name); ok {
		return found.Title
	}
	return name
}

// WriteOutcomes writes outcomes as plain text.
func WriteOutcomes(w io.Writer, outcomes []Outcome) {
	for _, o := range outcomes {
		fmt.Fprintf(w, "%-8s %s, %s against %s: promised %s, measured %s",
			o.verdict(), o.Title, subjectTitle(o.Subject), o.peerTitle(), o.formatBound(o.Target),
			o.formatMeasured())
		if o.Margin != 0 {
			fmt.Fprintf(w, " (margin %s)", o.formatBound(o.Margin))
		}
		fmt.Fprintln(w)
	}
}

// promiseRows returns the rows of the page's table: headline promises and missed promises.
func promiseRows(outcomes []Outcome) [][]string {
	var rows [][]string
	for _, o := range outcomes {
		if o.Measured && (o.Headline || !o.Met) {
			subject := strings.TrimPrefix(subjectTitle(o.Subject), "crdcache, ")
			rows = append(rows, []string{o.Title + ", " + subject, o.peerTitle(),
				formatThousands(int64(o.Objects)), o.formatBound(o.Target), o.formatMeasured(), o.verdict()})
		}
	}
	return rows
}

// peerTitle returns the title of the compared subject, or the number of objects of a flat promise.
func (o Outcome) peerTitle() string {
	switch {
	case o.Flat:
		return formatThousands(flatFrom) + " objects"
	case o.Absolute:
		return missingCell
	}
	return subjectTitle(o.Peer)
}

// formatFigure formats a ratio, or the figure of an absolute promise.
func (o Outcome) formatFigure(value float64) string {
	if o.Absolute {
		return formatQuantity(o.Over.Metric, value)
	}
	return formatRatio(value)
}

func (o Outcome) formatBound(value float64) string {
	if o.AtMost {
		return "≤ " + o.formatFigure(value)
	}
	return "≥ " + o.formatFigure(value)
}

// formatMeasured formats the ratio, followed by the extremes of single rounds.
func (o Outcome) formatMeasured() string {
	if !o.Measured {
		return missingCell
	}
	if o.High == 0 {
		return o.formatFigure(o.Ratio)
	}
	low, high := strings.TrimSuffix(o.formatFigure(o.Low), "×"), strings.TrimSuffix(o.formatFigure(o.High), "×")
	return o.formatFigure(o.Ratio) + " (" + low + "–" + high + ")"
}

func (o Outcome) verdict() string {
	switch {
	case !o.Measured:
		return "unknown"
	case o.Met:
		return "met"
	default:
		return "missed"
	}
}
