package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// promises writes the table of what is promised.
func promises(b *strings.Builder, outcomes []Outcome) {
	b.WriteString("## Promises\n\n")
	b.WriteString("Each is a ratio of two figures of the same run, or a figure. These are what the project set out to reach; the numbers\n" +
		"have not been changed to fit. In brackets is what single rounds came to, from the least to the greatest: where a target\n" +
		"lies between them, noise decides. CI repeats them with few objects on a busy machine and fails only beyond the last\ncolumn. " +
		"What is missed, and why, is told with profiles in [storage.md](design/storage.md#what-is-missed-and-why).\n\n")
	promiseTable(b, outcomes, true)
	b.WriteString("These were promised when it was seen what can be reached.\n\n")
	promiseTable(b, outcomes, false)
}

// promiseTable writes the promises that are required, or the others.
func promiseTable(b *strings.Builder, outcomes []Outcome, required bool) {
	fmt.Fprintln(b, line([]string{"what", "of", "against", "promised", "measured", "objects", "met", "CI fails"}))
	fmt.Fprintln(b, "|---|---|---|---:|---:|---:|---|---:|")
	for _, o := range outcomes {
		if o.Required == required {
			fmt.Fprintln(b, line([]string{o.What, title(o.Who), against(o), promised(o), measured(o), objects(o), verdict(o), limit(o)}))
		}
	}
	fmt.Fprintln(b)
}

// WriteOutcomes writes what became of the promises as plain text.
func WriteOutcomes(w io.Writer, outcomes []Outcome) {
	for _, o := range outcomes {
		fmt.Fprintf(w, "%-8s %s, %s against %s: promised %s, measured %s",
			verdict(o), o.What, title(o.Who), against(o), promised(o), measured(o))
		if o.Margin != 0 {
			fmt.Fprintf(w, " (CI fails %s)", limit(o))
		}
		fmt.Fprintln(w)
	}
}

func against(o Outcome) string {
	switch {
	case o.Flat:
		return "itself with " + commas(flatFrom) + " objects"
	case o.Absolute:
		return missing
	}
	return title(o.Against)
}

// amount writes a ratio, or a figure.
func amount(o Outcome, value float64) string {
	if o.Absolute {
		return quantity(o.Over.Metric, value)
	}
	return times(value)
}

// titles names the subjects other than caches.
var titles = map[string]string{
	experiment.Stock:      "client-go, apimachinery",
	experiment.Ours:       "crdcache",
	experiment.OursPacked: "crdcache, packed",
	experiment.Kubectl:    "kubectl",

	experiment.StockManager: "manager on controller-runtime's cache",
	experiment.OursManager:  "manager on crdcache",

	experiment.CompressedManager: "manager on crdcache, compressed",

	experiment.OnlyReplica:   "one replica of all",
	experiment.ServerReplica: fmt.Sprintf("one of %d replicas, the server filters", experiment.Replicas),
	experiment.ClientReplica: fmt.Sprintf("one of %d replicas, the client filters", experiment.Replicas),

	experiment.Unchanged: "crdcache, restarted: nothing has changed",
	experiment.Changed:   "crdcache, restarted: " + commas(experiment.RestartChanges) + " objects have changed",
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

func promised(o Outcome) string {
	if o.AtMost {
		return "≤ " + amount(o, o.Target)
	}
	return "≥ " + amount(o, o.Target)
}

func measured(o Outcome) string {
	if !o.Measured {
		return missing
	}
	if o.High == 0 {
		return amount(o, o.Ratio)
	}
	low, high := amount(o, o.Low), amount(o, o.High)
	if !o.Absolute {
		low, high = strings.TrimSuffix(low, "×"), strings.TrimSuffix(high, "×")
	}
	return amount(o, o.Ratio) + " (" + low + "–" + high + ")"
}

func objects(o Outcome) string {
	if !o.Measured {
		return missing
	}
	return commas(int64(o.Objects))
}

func verdict(o Outcome) string {
	switch {
	case !o.Measured:
		return "unknown"
	case o.Met:
		return "yes"
	default:
		return "no"
	}
}

func limit(o Outcome) string {
	switch {
	case o.Margin == 0:
		return missing
	case o.AtMost:
		return "> " + amount(o, o.Margin)
	default:
		return "< " + amount(o, o.Margin)
	}
}
