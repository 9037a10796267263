package cli

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

// print prints what differs.
func (o *snapshotDiffOptions) print(all snapshotDifference) error {
	text, err := structured(o.format, all)
	if err != nil {
		return err
	}
	if text != nil {
		_, err = o.Out.Write(text)
		return err
	}
	for _, m := range all.NotCompared {
		if !m.failed {
			o.warn(fmt.Sprintf("%s is not compared: %s", m.Type, print.Line(m.Message)))
		}
	}
	return print.WriteControl(o.Out, all.text(o.color))
}

// text is for people: nothing without differences, as with diff.
func (d snapshotDifference) text(color bool) string {
	var b strings.Builder
	for _, t := range d.Types {
		fmt.Fprintf(&b, "%s: %d added, %d removed, %d changed\n", print.Printable(t.Type), len(t.Added), len(t.Removed), len(t.Changed))
		line := func(sign, key string, of print.Color) {
			text := sign + " " + print.Printable(key)
			if color {
				text = print.Paint(text, of)
			}
			b.WriteString(text + "\n")
		}
		for _, key := range t.Added {
			line("+", key, print.Green)
		}
		for _, key := range t.Removed {
			line("-", key, print.Red)
		}
		for _, o := range t.Changed {
			line("~", o.Key, print.Yellow)
			b.WriteString(print.ChangesText(o.changes, color))
		}
	}
	return b.String()
}
