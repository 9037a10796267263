package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

// print writes the reports to stdout.
func (o *statsOptions) print(reports []statsReport) error {
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

func (o *statsOptions) printReport(out *bufio.Writer, r statsReport) {
	fmt.Fprintf(out, "%s: %d objects, %s in storage mode %s, synced in %s\n", r.Type, r.Objects, sizeText(r.Bytes), r.Storage, r.SyncTime)
	if r.Objects == 0 {
		return
	}
	per := float64(r.Bytes) / float64(r.Objects)
	fmt.Fprintf(out, "  %.0f bytes an object: bodies %s, table %s, indexes %s\n", per, sizeText(r.Body), sizeText(r.Table), sizeText(r.Bytes-r.Body-r.Table))
	for _, x := range r.Indexes {
		fmt.Fprintf(out, "  %s: %s in %d of %d objects, %s\n", x.Name, countOfValues(x.Values), x.Objects, r.Objects, sizeText(x.Bytes))
		o.printBars(out, x, r.Objects)
		printTroubles(out, x)
	}
}

const (
	// maxValue is how many characters of a value are shown, and barWidth how wide the bar of all objects is; with
	// the counts they fit into 80 columns.
	maxValue = 32
	barWidth = 30
)

// printBars shows the most frequent values, each with a bar as long as its share of all objects.
func (o *statsOptions) printBars(out *bufio.Writer, x indexReport, objects int) {
	width := 0
	texts := make([]string, len(x.Top))
	for i, v := range x.Top {
		texts[i] = shortValue(v.Value)
		width = max(width, utf8.RuneCountInString(texts[i]))
	}
	shown := 0
	for i, v := range x.Top {
		length := (v.Count*barWidth + objects - 1) / objects
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(texts[i]))
		fmt.Fprintf(out, "    %s%s %7d %s\n", texts[i], pad, v.Count, strings.Repeat(print.Symbol("█", "#"), length))
		shown++
	}
	if left := x.Values - shown; shown > 0 && left > 0 {
		fmt.Fprintf(out, "    %s %d more\n", print.Ellipsis(), left)
	}
}

// maxNamed is how many values and objects a line about trouble names.
const maxNamed = 5

// printTroubles says what the index leaves out, and what the config wants otherwise.
func printTroubles(out *bufio.Writer, x indexReport) {
	if s := x.Skipped; s != nil {
		var parts []string
		for _, part := range []struct {
			n   uint64
			why string
		}{
			{s.Missing, "%d missing"}, {s.Type, "%d of another type"}, {s.Limit, "%d beyond a limit"}, {s.When, "%d not meant by its condition"},
		} {
			if part.n > 0 {
				parts = append(parts, fmt.Sprintf(part.why, part.n))
			}
		}
		fmt.Fprintf(out, "    left out: %s\n", strings.Join(parts, ", "))
	}
	if len(x.Reported) > 0 {
		keys := make([]string, len(x.Reported))
		for i, key := range x.Reported {
			keys[i] = print.Printable(key)
		}
		fmt.Fprintf(out, "    without a value: %s\n", someNamed(keys, func(int) string { return " " + print.Ellipsis() })) // no more than some are known
	}
	if len(x.Duplicates) > 0 {
		texts := make([]string, len(x.Duplicates))
		for i, v := range x.Duplicates {
			texts[i] = fmt.Sprintf("%s (%d objects)", shortValue(v.Value), v.Count)
		}
		fmt.Fprintf(out, "    not unique: %s\n", someNamed(texts, func(more int) string { return fmt.Sprintf(" and %d more", more) }))
	}
}

// someNamed is the first of the texts, and what more says of the number of the others.
func someNamed(texts []string, more func(int) string) string {
	shown := texts[:min(len(texts), maxNamed)]
	line := strings.Join(shown, ", ")
	if left := len(texts) - len(shown); left > 0 {
		line += more(left)
	}
	return line
}

// shortValue is a value on a terminal.
func shortValue(value string) string {
	if value == "" {
		return `""`
	}
	return print.Cut(print.Printable(value), maxValue)
}

func countOfValues(n int) string {
	if n == 1 {
		return "1 value"
	}
	return fmt.Sprintf("%d values", n)
}

// sizeText is a number of bytes for a person.
func sizeText(bytes int64) string {
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
