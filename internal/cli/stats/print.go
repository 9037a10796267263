package stats

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/crdcache/crdcache/internal/cli/output"
)

// print writes the reports to stdout.
func (o *options) print(reports []report) error {
	if o.json {
		encoder := json.NewEncoder(o.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(reports)
	}
	out := bufio.NewWriter(o.Out)
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(out)
		}
		o.printReport(out, r) // bufio keeps the first error for Flush
	}
	return out.Flush()
}

func (o *options) printReport(out *bufio.Writer, r report) {
	fmt.Fprintf(out, "%s: %d objects, %s in storage mode %s, synced in %s\n", r.Type, r.Objects, size(r.Bytes), r.Storage, r.SyncTime)
	if r.Objects == 0 {
		return
	}
	per := float64(r.Bytes) / float64(r.Objects)
	fmt.Fprintf(out, "  %.0f bytes an object: bodies %s, table %s, indexes %s\n", per, size(r.Body), size(r.Table), size(r.Bytes-r.Body-r.Table))
	for _, x := range r.Indexes {
		fmt.Fprintf(out, "  %s: %s in %d of %d objects, %s\n", x.Name, values(x.Values), x.Objects, r.Objects, size(x.Bytes))
		o.printBars(out, x, r.Objects)
	}
}

const (
	// maxValue is how many characters of a value are shown, and barWidth how wide the bar of all objects is; with
	// the counts they fit into 80 columns.
	maxValue = 32
	barWidth = 30
)

// printBars shows the most frequent values, each with a bar as long as its share of all objects.
func (o *options) printBars(out *bufio.Writer, x indexReport, objects int) {
	width := 0
	texts := make([]string, len(x.Top))
	for i, v := range x.Top {
		texts[i] = output.Cut(output.Printable(v.Value), maxValue)
		if v.Value == "" {
			texts[i] = `""`
		}
		width = max(width, utf8.RuneCountInString(texts[i]))
	}
	shown := 0
	for i, v := range x.Top {
		length := (v.Count*barWidth + objects - 1) / objects
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(texts[i]))
		fmt.Fprintf(out, "    %s%s %7d %s\n", texts[i], pad, v.Count, strings.Repeat(output.Symbol("█", "#"), length))
		shown++
	}
	if left := x.Values - shown; shown > 0 && left > 0 {
		fmt.Fprintf(out, "    %s %d more\n", output.Ellipsis(), left)
	}
}

func values(n int) string {
	if n == 1 {
		return "1 value"
	}
	return fmt.Sprintf("%d values", n)
}

// size is a number of bytes for a person.
func size(bytes int64) string {
	const step = 1024
	value, unit := float64(bytes), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < step {
			break
		}
		value, unit = value/step, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
