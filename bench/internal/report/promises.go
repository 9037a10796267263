package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/promise"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// promises writes the table of what is promised.
func promises(b *strings.Builder, outcomes []promise.Outcome) {
	b.WriteString("## Promises\n\n")
	b.WriteString("Each is a ratio of two figures of the same run. CI repeats them with few objects on a busy machine and fails\n" +
		"only beyond the last column.\n\n")
	fmt.Fprintln(b, line([]string{"what", "of", "against", "promised", "measured", "objects", "met", "CI fails"}))
	fmt.Fprintln(b, "|---|---|---|---:|---:|---:|---|---:|")
	for _, o := range outcomes {
		fmt.Fprintln(b, line([]string{o.What, title(o.Who), against(o), promised(o), measured(o), objects(o), verdict(o), limit(o)}))
	}
	fmt.Fprintln(b)
}

// Outcomes writes what became of the promises as plain text.
func Outcomes(w io.Writer, outcomes []promise.Outcome) {
	for _, o := range outcomes {
		fmt.Fprintf(w, "%-8s %s, %s against %s: promised %s, measured %s",
			verdict(o), o.What, title(o.Who), against(o), promised(o), measured(o))
		if o.Margin != 0 {
			fmt.Fprintf(w, " (CI fails %s)", limit(o))
		}
		fmt.Fprintln(w)
	}
}

func against(o promise.Outcome) string {
	if o.Flat {
		return "itself with " + commas(promise.FlatFrom) + " objects"
	}
	return title(o.Against)
}

// titles are those of the subjects that are no caches.
var titles = map[string]string{
	experiment.Stock:      "client-go, apimachinery",
	experiment.Ours:       "crdcache",
	experiment.OursPacked: "crdcache, packed",
	experiment.Kubectl:    "kubectl",
}

// title is the name of a subject in the report.
func title(name string) string {
	if t, ok := titles[name]; ok {
		return t
	}
	if found, err := subject.Find([]string{name}); err == nil {
		return found[0].Title
	}
	return name
}

func promised(o promise.Outcome) string {
	if o.AtMost {
		return "≤ " + times(o.Target)
	}
	return "≥ " + times(o.Target)
}

func measured(o promise.Outcome) string {
	if !o.Measured {
		return missing
	}
	return times(o.Ratio)
}

func objects(o promise.Outcome) string {
	if !o.Measured {
		return missing
	}
	return commas(int64(o.Objects))
}

func verdict(o promise.Outcome) string {
	switch {
	case !o.Measured:
		return "unknown"
	case o.Met:
		return "yes"
	default:
		return "no"
	}
}

func limit(o promise.Outcome) string {
	switch {
	case o.Margin == 0:
		return missing
	case o.AtMost:
		return "> " + times(o.Margin)
	default:
		return "< " + times(o.Margin)
	}
}
