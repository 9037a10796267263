package indexers

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

var (
	yamlErrorPrefix = regexp.MustCompile(`^(?:yaml: (?:line (\d+): )?)?`) // always matches
	yamlAnchor      = regexp.MustCompile(`unknown anchor '([^']*)' referenced`)
)

// syntaxFinding converts an error of the YAML library to a finding. The error has only a line, often the line
// of the enclosing map or list.
func (f *sourceFile) syntaxFinding(err error) Diagnostic {
	text := yamlErrorPrefix.ReplaceAllString(err.Error(), "")
	if m := yamlAnchor.FindStringSubmatch(text); m != nil {
		for i, line := range f.lines {
			if before, _, ok := strings.Cut(line, "*"+m[1]); ok {
				pos := position{i + 1, utf8.RuneCountInString(before) + 1, len(m[1]) + 1}
				return f.finding(codeAlias, pos, "there is no anchor "+strconv.Quote(m[1]),
					"write the value out, or quote it when it is text")
			}
		}
	}
	if pos, r, ok := f.findControlCharacter(); ok {
		return f.finding(codeYAML, pos, fmt.Sprintf("the control character %U is not allowed", r), "remove it")
	}
	pos := position{Line: f.lineOf(err)}
	for _, s := range syntaxMistakes {
		for back := range 1 + s.linesAbove {
			if position, ok := s.find(f, pos.Line-back); ok {
				return f.finding(codeYAML, position, s.message, s.hint)
			}
		}
	}
	if text == "found unexpected end of stream" {
		text = "a quote or a bracket is not closed"
	}
	line := f.line(pos.Line)
	pos.Column = len(line) - len(strings.TrimLeft(line, " \t")) + 1
	return f.finding(codeYAML, pos, "this is not YAML: "+text,
		"look at the indentation, the quotes and the brackets on and above this line")
}

type syntaxMistake struct {
	pattern       lazyPattern // its group is the invalid part
	message, hint string
	linesAbove    int // number of lines above the error to search
}

// syntaxMistakes explain most syntax errors better than the library does. They are only searched where an
// error is.
var syntaxMistakes = []syntaxMistake{
	{newLazyPattern(`^[ -]*(\t)`), "a tab cannot indent", "use spaces", 0},
	{newLazyPattern(`\{(\{)`), "this is a template", "load the rendered file", 0},
	{newLazyPattern(`^(%YAML)`), "this %YAML directive is not understood", "remove the line", 0},
	{
		newLazyPattern(`\b(?:path|each|when): *([^'"\s{\[][^'"]*[\[{?].*|[@!%&*|>` + "`" + `].*)`),
		"this path needs quotes around it", "write it between single quotes, as in path: '.spec.hosts[*]'", 0,
	},
	{newLazyPattern(`:([\x{a0}\x{2007}\x{202f}])`), "this blank is not a space", "replace it by a space", 1},
	{newLazyPattern(`^ *(?:- *)?[A-Za-z]+(:)[^\s:]+$`), "there is no space after the colon",
		"write name: value", 1},
	{newLazyPattern(`^ *(-)[A-Za-z]+:(?: |$)`), "there is no space after the dash",
		"write - name: value", 1},
}

// find searches a line.
func (s syntaxMistake) find(f *sourceFile, number int) (position, bool) {
	line := f.line(number)
	m := s.pattern.compile().FindStringSubmatchIndex(line)
	if m == nil {
		return position{}, false
	}
	return position{number, utf8.RuneCountInString(line[:m[2]]) + 1,
		utf8.RuneCountInString(line[m[2]:m[3]])}, true
}

// findControlCharacter returns the first character that YAML does not allow.
func (f *sourceFile) findControlCharacter() (position, rune, bool) {
	for i, line := range f.lines {
		for n, r := range line {
			if r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xfffe || r == 0xffff {
				return position{i + 1, utf8.RuneCountInString(line[:n]) + 1, 1}, r, true
			}
		}
	}
	return position{}, 0, false
}

// maxSearchedLines is the number of lines above which searching the line of an error takes too long.
const maxSearchedLines = 5000

// lineOf returns the line of an error: the first one that must be added for the error to occur.
func (f *sourceFile) lineOf(err error) int {
	if len(f.lines) > maxSearchedLines {
		line, _ := strconv.Atoi(yamlErrorPrefix.FindStringSubmatch(err.Error())[1])
		return line
	}
	// high lines have the error; low lines have none or another one
	low, high := 0, len(f.lines)
	for low+1 < high {
		middle := (low + high) / 2
		if e := parseError(strings.Join(f.lines[:middle], "\n") + "\n"); e != nil &&
			e.Error() == err.Error() {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// parseError returns the first error in a stream of documents.
func parseError(text string) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
