package print

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/display"
)

// Color is an ANSI escape sequence.
type Color string

// Colors of added, modified and removed values.
const (
	Green      Color = "\x1b[32m"
	Yellow     Color = "\x1b[33m"
	Red        Color = "\x1b[31m"
	resetColor       = "\x1b[0m"
)

// Colorize colors text. It returns text unchanged if color is empty.
func Colorize(text string, color Color) string {
	if color == "" {
		return text
	}
	return string(color) + text + resetColor
}

const (
	// maxBrief is the number of characters shown of a value.
	maxBrief = 100
	// maxLines is the number of lines shown of a value.
	maxLines = 20
	// contextBefore is the number of characters shown before the first difference of a long text.
	contextBefore = 20
)

// ChangesText formats changes for a person, with long texts and large values on several lines. It replaces
// control characters of objects.
func ChangesText(changes []display.Change, color bool) string {
	if len(changes) == 0 {
		return "  only fields that change with every write\n"
	}
	var p changeWriter
	p.color = color
	for _, c := range changes {
		p.change(c)
	}
	return p.text.String()
}

type changeWriter struct {
	text  strings.Builder
	color bool
}

// writeLine appends a line without control characters.
func (p *changeWriter) writeLine(color Color, text string) {
	text = Printable(text)
	if p.color {
		text = Colorize(text, color)
	}
	p.text.WriteString(text + "\n")
}

func (p *changeWriter) change(c display.Change) {
	switch {
	case c.HasOld && c.HasNew:
		p.modified(c)
	case c.HasNew:
		p.addedOrRemoved(Green, "+", PathText(c.Path), c.New)
	default:
		p.addedOrRemoved(Red, "-", PathText(c.Path), c.Old)
	}
}

// addedOrRemoved prints a value, on several lines if it is long.
func (p *changeWriter) addedOrRemoved(color Color, sign, path string, value any) {
	if text := encodeValue(value); len([]rune(text)) <= maxBrief {
		p.writeLine(color, fmt.Sprintf("  %s %s: %s", sign, path, text))
		return
	}
	var lines []string
	switch v := value.(type) {
	case map[string]any, []any:
		lines = appendLeaves(nil, "", v)
	case string:
		lines = splitLines(v)
	}
	if len(lines) < 2 {
		p.writeLine(color, fmt.Sprintf("  %s %s: %s", sign, path, briefValue(value)))
		return
	}
	p.writeLine(color, fmt.Sprintf("  %s %s:", sign, path))
	p.writeLines(color, "      ", lines)
}

// appendLeaves appends the leaf values below a value, with their paths.
func appendLeaves(lines []string, path string, value any) []string {
	before := len(lines)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			lines = appendLeaves(lines, path+pathStep(key), v[key])
		}
	case []any:
		for i, element := range v {
			lines = appendLeaves(lines, fmt.Sprintf("%s[%d]", path, i), element)
		}
	}
	if len(lines) == before {
		lines = append(lines, strings.TrimPrefix(path, ".")+": "+briefValue(value))
	}
	return lines
}

// writeLines prints up to maxLines lines.
func (p *changeWriter) writeLines(color Color, indent string, writeLines []string) {
	for i, line := range writeLines {
		if i == maxLines {
			p.writeLine(color, fmt.Sprintf("%s%s and %d more lines", indent, Ellipsis(), len(writeLines)-i))
			return
		}
		p.writeLine(color, indent+Truncate(line, maxBrief))
	}
}

func (p *changeWriter) modified(c display.Change) {
	before, wasText := c.Old.(string)
	after, isText := c.New.(string)
	if !wasText || !isText {
		p.oldNew(PathText(c.Path), c.Old, c.New)
		return
	}
	if strings.Contains(strings.TrimSuffix(before, "\n"), "\n") ||
		strings.Contains(strings.TrimSuffix(after, "\n"), "\n") {
		p.modifiedLines(PathText(c.Path), splitLines(before), splitLines(after))
		return
	}
	if len([]rune(encodeValue(before))) > maxBrief || len([]rune(encodeValue(after))) > maxBrief {
		before, after = cutCommonPrefix(before, after)
	}
	p.oldNew(PathText(c.Path), before, after)
}

func (p *changeWriter) oldNew(path string, before, after any) {
	p.writeLine(Yellow, fmt.Sprintf("  ~ %s: %s %s %s", path, briefValue(before), Symbol("→", "->"),
		briefValue(after)))
}

// modifiedLines prints the differing lines of a text.
func (p *changeWriter) modifiedLines(path string, before, after []string) {
	p.writeLine(Yellow, fmt.Sprintf("  ~ %s:", path))
	for _, gap := range display.Gaps(before, after) {
		p.writeLine("", fmt.Sprintf("      @ line %d", gap.After+1))
		p.writeLines(Red, "      - ", before[gap.Before:gap.BeforeEnd])
		p.writeLines(Green, "      + ", after[gap.After:gap.AfterEnd])
	}
}

func splitLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// cutCommonPrefix cuts the common prefix of two long texts except for contextBefore characters.
func cutCommonPrefix(before, after string) (string, string) {
	b, a := []rune(before), []rune(after)
	common := 0
	for common < min(len(b), len(a)) && b[common] == a[common] {
		common++
	}
	if common <= contextBefore {
		return before, after
	}
	return Ellipsis() + string(b[common-contextBefore:]), Ellipsis() + string(a[common-contextBefore:])
}

// encodeValue returns a value as JSON on one line.
func encodeValue(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// briefValue returns encodeValue, cut to maxBrief characters.
func briefValue(value any) string { return Truncate(encodeValue(value), maxBrief) }
