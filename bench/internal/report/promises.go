package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/promise"
)

// promises writes the table of what is promised.
func promises(b *strings.Builder, outcomes []promise.Outcome) {
	b.WriteString("## Promises\n\n")
	b.WriteString("Each is a ratio of two figures of the same run. CI repeats them with few objects on a busy machine and fails\n" +
		"only beyond the last column.\n\n")
	fmt.Fprintln(b, line([]string{"what", "promised", "measured", "objects", "met", "CI fails"}))
	fmt.Fprintln(b, "|---|---:|---:|---:|---|---:|")
	for _, o := range outcomes {
		fmt.Fprintln(b, line([]string{o.Text, promised(o), measured(o), objects(o), verdict(o), limit(o)}))
	}
	fmt.Fprintln(b)
}

// Outcomes writes what became of the promises as plain text.
func Outcomes(w io.Writer, outcomes []promise.Outcome) {
	for _, o := range outcomes {
		fmt.Fprintf(w, "%-8s %s: promised %s, measured %s", verdict(o), o.Text, promised(o), measured(o))
		if o.Margin != 0 {
			fmt.Fprintf(w, " (CI fails %s)", limit(o))
		}
		if o.Broken {
			fmt.Fprint(w, " BROKEN")
		}
		fmt.Fprintln(w)
	}
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
		return "**no**"
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
