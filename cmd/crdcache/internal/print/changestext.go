package print

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
)

// Color is an escape sequence.
type Color string

// The colours of what is new, what is other than before, and what is gone.
const (
	Green     Color = "\x1b[32m"
	Yellow    Color = "\x1b[33m"
	Red       Color = "\x1b[31m"
	plainEdge       = "\x1b[0m"
)

// Paint puts text between a colour and its end; without a colour it leaves it as it is.
func Paint(text string, color Color) string {
	if color == "" {
		return text
	}
	return string(color) + text + plainEdge
}

const (
	// maxBrief is how many characters of a value are shown.
	maxBrief = 100
	// maxLines is how many lines of a value are shown below its path.
	maxLines = 20
	// contextBefore is how many characters are shown before the first that differs of a long text.
	contextBefore = 20
)

// ChangesText tells a person of changes, a line for each, but more for texts of many lines and for large
// values. Nothing of an object reaches a terminal as more than text.
func ChangesText(changes []Change, color bool) string {
	if len(changes) == 0 {
		return "  nothing but what changes with every write\n"
	}
	var p painter
	p.color = color
	for _, c := range changes {
		p.change(c)
	}
	return p.text.String()
}

type painter struct {
	text  strings.Builder
	color bool
}

// line adds a line, without what would steer a terminal.
func (p *painter) line(color Color, text string) {
	text = Printable(text)
	if p.color {
		text = Paint(text, color)
	}
	p.text.WriteString(text + "\n")
}

func (p *painter) change(c Change) {
	switch {
	case c.HasOld && c.HasNew:
		p.replaced(c)
	case c.HasNew:
		p.whole(Green, "+", c.Path, c.New)
	default:
		p.whole(Red, "-", c.Path, c.Old)
	}
}

// whole shows a value that is new or gone: below its path where a line is too short for it.
func (p *painter) whole(color Color, sign, path string, value any) {
	if text := encodeValue(value); len([]rune(text)) <= maxBrief {
		p.line(color, fmt.Sprintf("  %s %s: %s", sign, path, text))
		return
	}
	var lines []string
	switch v := value.(type) {
	case map[string]any, []any:
		var d differ
		d.leaves("", v)
		for _, c := range d.changes {
			lines = append(lines, strings.TrimPrefix(c.Path, ".")+": "+briefValue(c.New))
		}
	case string:
		lines = splitLines(v)
	}
	if len(lines) < 2 {
		p.line(color, fmt.Sprintf("  %s %s: %s", sign, path, briefValue(value)))
		return
	}
	p.line(color, fmt.Sprintf("  %s %s:", sign, path))
	p.lines(color, "      ", lines)
}

// leaves lists the values below a value as if they were new.
func (d *differ) leaves(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range union(v, nil) {
			d.leaves(path+pathStep(key), v[key])
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, element := range v {
			d.leaves(fmt.Sprintf("%s[%d]", path, i), element)
		}
		if len(v) > 0 {
			return
		}
	}
	d.changes = append(d.changes, Change{Path: path, New: value, HasNew: true})
}

// lines shows as many lines as fit.
func (p *painter) lines(color Color, indent string, lines []string) {
	for i, line := range lines {
		if i == maxLines {
			p.line(color, fmt.Sprintf("%s%s and %d more lines", indent, Ellipsis(), len(lines)-i))
			return
		}
		p.line(color, indent+Cut(line, maxBrief))
	}
}

// replaced shows a value that has taken the place of another.
func (p *painter) replaced(c Change) {
	before, wasText := c.Old.(string)
	after, isText := c.New.(string)
	if !wasText || !isText {
		p.instead(c.Path, c.Old, c.New)
		return
	}
	if strings.Contains(strings.TrimSuffix(before, "\n"), "\n") ||
		strings.Contains(strings.TrimSuffix(after, "\n"), "\n") {
		p.replacedLines(c.Path, splitLines(before), splitLines(after))
		return
	}
	if len([]rune(encodeValue(before))) > maxBrief || len([]rune(encodeValue(after))) > maxBrief {
		before, after = differingWindow(before, after)
	}
	p.instead(c.Path, before, after)
}

// instead shows one value after another.
func (p *painter) instead(path string, before, after any) {
	p.line(Yellow, fmt.Sprintf("  ~ %s: %s %s %s", path, briefValue(before), Symbol("→", "->"),
		briefValue(after)))
}

// replacedLines shows which lines of a text differ.
func (p *painter) replacedLines(path string, before, after []string) {
	p.line(Yellow, fmt.Sprintf("  ~ %s:", path))
	for _, gap := range gaps(before, after) {
		p.line("", fmt.Sprintf("      @ line %d", gap.after+1))
		p.lines(Red, "      - ", before[gap.before:gap.beforeEnd])
		p.lines(Green, "      + ", after[gap.after:gap.afterEnd])
	}
}

func splitLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// differingWindow leaves out what two long texts begin with alike, but for a little.
func differingWindow(before, after string) (string, string) {
	b, a := []rune(before), []rune(after)
	same := 0
	for same < min(len(b), len(a)) && b[same] == a[same] {
		same++
	}
	if same <= contextBefore {
		return before, after
	}
	return Ellipsis() + string(b[same-contextBefore:]), Ellipsis() + string(a[same-contextBefore:])
}

// encodeValue gives a value as JSON on one line.
func encodeValue(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// briefValue is encode, cut where it is long.
func briefValue(value any) string { return Cut(encodeValue(value), maxBrief) }

// ColorFlag is the flag --color.
type ColorFlag struct{ when string }

// Add adds the flag.
func (f *ColorFlag) Add(set *pflag.FlagSet) {
	set.StringVar(&f.when, "color", "auto",
		"Colour the output: auto (on a terminal, unless NO_COLOR is set), always or never.")
}

// Always reports whether colours are asked for wherever the output goes.
func (f *ColorFlag) Always() bool { return f.when == "always" }

// Enabled reports whether what goes to out is to be coloured.
func (f *ColorFlag) Enabled(out io.Writer) (bool, error) {
	switch f.when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return os.Getenv("NO_COLOR") == "" && Controllable(out), nil
	}
	return false, exit.Usagef("--color is %q; use auto, always or never", f.when)
}
