package print

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/display"
	"github.com/crdcache/crdcache/internal/jsontext"
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

// Colorize returns text unchanged if color is empty.
func Colorize(text string, color Color) string {
	if color == "" {
		return text
	}
	return string(color) + text + resetColor
}

const (
	// maxBriefLength is the maximum length of a value on one line, in characters.
	maxBriefLength = 100
	// maxValueLines is the maximum number of lines of a value.
	maxValueLines = 20
	// contextLength is the number of characters before the first difference of a long text.
	contextLength = 20
)

// ChangesText formats changes as text. Long texts and large values have several lines. Control characters of
// objects are replaced.
func ChangesText(changes []display.Change, color bool) string {
	if len(changes) == 0 {
		return "  only fields that change with every write\n"
	}
	var p changeWriter
	p.color = color
	for _, c := range changes {
		switch {
		case c.HasOld && c.HasNew:
			p.writeModified(c)
		case c.HasNew:
			p.writeAddedOrRemoved(Green, "+", PathText(c.Path), c.New)
		default:
			p.writeAddedOrRemoved(Red, "-", PathText(c.Path), c.Old)
		}
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

// writeAddedOrRemoved prints a value, on several lines if it is long.
func (p *changeWriter) writeAddedOrRemoved(color Color, sign, path string, value any) {
	if text := jsontext.Compact(value); len([]rune(text)) <= maxBriefLength {
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
	p.lines(color, "      ", lines)
}

// appendLeaves appends a line for each leaf below a value, with its path.
func appendLeaves(lines []string, path string, value any) []string {
	initialLength := len(lines)
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
	if len(lines) == initialLength {
		lines = append(lines, strings.TrimPrefix(path, ".")+": "+briefValue(value))
	}
	return lines
}

// lines prints up to maxValueLines lines.
func (p *changeWriter) lines(color Color, indent string, lines []string) {
	for i, line := range lines {
		if i == maxValueLines {
			p.writeLine(color, fmt.Sprintf("%s%s and %d more lines", indent, Ellipsis(), len(lines)-i))
			return
		}
		p.writeLine(color, indent+Truncate(line, maxBriefLength))
	}
}

func (p *changeWriter) writeModified(c display.Change) {
	before, wasText := c.Old.(string)
	after, isText := c.New.(string)
	if !wasText || !isText {
		p.writeOldNew(PathText(c.Path), c.Old, c.New)
		return
	}
	if strings.Contains(strings.TrimSuffix(before, "\n"), "\n") ||
		strings.Contains(strings.TrimSuffix(after, "\n"), "\n") {
		p.writeModifiedLines(PathText(c.Path), splitLines(before), splitLines(after))
		return
	}
	if len([]rune(jsontext.Compact(before))) > maxBriefLength ||
		len([]rune(jsontext.Compact(after))) > maxBriefLength {
		before, after = cutCommonPrefix(before, after)
	}
	p.writeOldNew(PathText(c.Path), before, after)
}

func (p *changeWriter) writeOldNew(path string, before, after any) {
	p.writeLine(Yellow, fmt.Sprintf("  ~ %s: %s %s %s", path, briefValue(before), Symbol("→", "->"),
		briefValue(after)))
}

func (p *changeWriter) writeModifiedLines(path string, before, after []string) {
	p.writeLine(Yellow, fmt.Sprintf("  ~ %s:", path))
	for _, gap := range display.DifferingRanges(before, after) {
		p.writeLine("", fmt.Sprintf("      @ line %d", gap.After+1))
		p.lines(Red, "      - ", before[gap.Before:gap.BeforeEnd])
		p.lines(Green, "      + ", after[gap.After:gap.AfterEnd])
	}
}

func splitLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// cutCommonPrefix cuts the common prefix of two long texts except for contextLength characters.
func cutCommonPrefix(before, after string) (string, string) {
	b, a := []rune(before), []rune(after)
	commonLength := 0
	for commonLength < min(len(b), len(a)) && b[commonLength] == a[commonLength] {
		commonLength++
	}
	if commonLength <= contextLength {
		return before, after
	}
	return Ellipsis() + string(b[commonLength-contextLength:]), Ellipsis() +
		string(a[commonLength-contextLength:])
}

func briefValue(value any) string { return Truncate(jsontext.Compact(value), maxBriefLength) }

// redactor replaces the values of Secrets by marks. Equal values get equal marks while the process runs.
var redactor = display.NewRedactor(false)

// comparison matches list elements by the fields that identify them in Kubernetes' types and in most CRDs.
var comparison = display.Comparison{
	IdentityFields: []string{"name", "type", "key", "uid"},
	Ignore: func(path []display.Step) bool {
		return len(path) <= 3 && slices.Contains(ignoredFields, PathText(path))
	}}

// Compare returns the fields that differ between two states of an object, ordered by path. The values of
// Secrets are redacted.
func Compare(resource schema.GroupResource, before, after map[string]any) []display.Change {
	return comparison.Changes(redactor.RedactPair(resource, before, after))
}

// ignoredFields change with every write or over time, or repeat other fields.
var ignoredFields = []string{
	pathStep(RowField), ".metadata.resourceVersion", ".metadata.generation",
	".metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']",
}

// PathText formats a path, with list elements by name or by index.
func PathText(path []display.Step) string {
	var text strings.Builder
	for _, s := range path {
		switch {
		case s.Index < 0:
			text.WriteString(pathStep(s.Key))
		case s.IdentityField != "":
			fmt.Fprintf(&text, "[%s=%v]", s.IdentityField, s.Element.(map[string]any)[s.IdentityField])
		default:
			fmt.Fprintf(&text, "[%d]", s.Index)
		}
	}
	return text.String()
}

// pathStep returns the text that appends a key to a path.
func pathStep(key string) string {
	if strings.ContainsAny(key, ".[]'\" /") || key == "" {
		return "['" + strings.ReplaceAll(key, "'", `\'`) + "']"
	}
	return "." + key
}
