package indexers

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// sourceFile is the text of a source, split into lines like YAML does.
type sourceFile struct {
	name string
	// number is the number of the file in the config.
	number int
	lines  []string
	// ascii marks lines with one byte per character. Otherwise, large JSON on one line would be scanned for
	// each name in it.
	ascii []bool
}

// newSourceFile splits a text into lines.
func newSourceFile(name, text string) *sourceFile {
	f := &sourceFile{name: name, lines: splitLines(text)}
	f.ascii = make([]bool, len(f.lines))
	for i, line := range f.lines {
		f.ascii[i] = utf8.RuneCountInString(line) == len(line)
	}
	return f
}

// splitLines splits at the line breaks of YAML 1.1: CR, LF, CRLF, and three Unicode line breaks. The YAML
// library counts lines the same way.
func splitLines(text string) []string {
	var lines []string
	start := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		next := i + size
		switch r {
		case '\r':
			if strings.HasPrefix(text[next:], "\n") {
				next++
			}
			fallthrough
		case '\n', '\u0085', '\u2028', '\u2029':
			lines = append(lines, text[start:i])
			start = next
		}
		i = next
	}
	return append(lines, text[start:])
}

// position is a range of characters within a line. Line and Column count from 1.
type position struct{ Line, Column, Length int }

// String formats the position as "line:column".
func (p position) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

func (f *sourceFile) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return f.lines[n-1]
}

// finding returns a finding about a position, which is moved into the file if necessary.
func (f *sourceFile) finding(code Code, at position, message, hint string) Diagnostic {
	at.Line = min(max(at.Line, 1), len(f.lines))
	source := f.line(at.Line)
	at.Column = min(max(at.Column, 1), utf8.RuneCountInString(source)+1)
	return Diagnostic{
		File: f.name, Line: at.Line, Column: at.Column, Length: max(at.Length, 1),
		Code: code, Message: message, Hint: hint, Source: source, fileNumber: f.number,
	}
}

func (f *sourceFile) lineFrom(line, column int) string {
	rest := f.line(line)
	if rest != "" && f.ascii[line-1] {
		return rest[min(max(column-1, 0), len(rest)):]
	}
	for ; column > 1 && rest != ""; column-- {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	return rest
}

// positionOf returns the position of a node: a whole scalar if it is on one line, otherwise its start.
func (f *sourceFile) positionOf(n *yaml.Node) position {
	pos := position{Line: n.Line, Column: n.Column, Length: 1}
	if n.Kind != yaml.ScalarNode {
		return pos
	}
	starts, ok := scalarColumns(f.lineFrom(n.Line, n.Column), n)
	if !ok {
		return pos
	}
	pos.Length = max(starts[len(starts)-1], 1)
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		pos.Length++ // the closing quote
	}
	return pos
}

// scalarRange returns the position of a range of bytes in a scalar's value.
func (f *sourceFile) scalarRange(n *yaml.Node, offset, end int) position {
	if n.Style&yaml.LiteralStyle != 0 {
		return f.blockScalarRange(n, offset, end)
	}
	starts, ok := scalarColumns(f.lineFrom(n.Line, n.Column), n)
	if !ok {
		return position{Line: n.Line, Column: n.Column, Length: 1}
	}
	last := len(starts) - 1
	offset, end = min(max(offset, 0), last), min(max(end, 0), last)
	return position{Line: n.Line, Column: n.Column + starts[offset],
		Length: max(starts[end]-starts[offset], 1)}
}

// blockScalarRange works like scalarRange for a scalar that begins with "|".
func (f *sourceFile) blockScalarRange(n *yaml.Node, offset, end int) position {
	offset = min(max(offset, 0), len(n.Value))
	start := strings.LastIndexByte(n.Value[:offset], '\n') + 1
	text, _, _ := strings.Cut(n.Value[start:], "\n")
	line := n.Line + 1 + strings.Count(n.Value[:start], "\n")
	indent, ok := strings.CutSuffix(f.line(line), text)
	if !ok || strings.Trim(indent, " ") != "" {
		return position{Line: n.Line, Column: n.Column, Length: 1}
	}
	end = min(max(end, offset), start+len(text))
	return position{Line: line, Column: len(indent) + utf8.RuneCountInString(n.Value[start:offset]) + 1,
		Length: max(utf8.RuneCountInString(n.Value[min(offset, end):end]), 1)}
}

// maxScalarLength is the maximum length of a scalar with exact positions.
const maxScalarLength = 64 << 10

// scalarColumns returns the column of each byte of a scalar's value, and last the column of its end. Columns
// are relative to the start of the scalar. raw is the line from the start of the scalar on.
//
// ok is false if the scalar spans lines, has a tag or an anchor, or is longer than maxScalarLength.
func scalarColumns(raw string, n *yaml.Node) (starts []int, ok bool) {
	var nextCharacter func(raw string) (size int, text string)
	column := 0
	switch {
	case len(n.Value) > maxScalarLength:
		return nil, false
	case n.Style&yaml.DoubleQuotedStyle != 0:
		nextCharacter, column = nextDoubleQuoted, 1
		if !strings.HasPrefix(raw, `"`) {
			return nil, false
		}
	case n.Style&yaml.SingleQuotedStyle != 0:
		nextCharacter, column = nextSingleQuoted, 1
		if !strings.HasPrefix(raw, "'") {
			return nil, false
		}
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return nil, false
	default:
		nextCharacter = nextPlain
	}
	raw = raw[column:]
	value := n.Value
	starts = make([]int, 0, len(value)+1)
	for value != "" {
		size, text := nextCharacter(raw)
		if size == 0 || text == "" || !strings.HasPrefix(value, text) {
			return nil, false
		}
		starts = append(starts, slices.Repeat([]int{column}, len(text))...)
		column += utf8.RuneCountInString(raw[:size])
		raw, value = raw[size:], value[len(text):]
	}
	return append(starts, column), true
}

// The next functions return the size of the first character in the source and its decoded text.

func nextPlain(raw string) (int, string) {
	_, size := utf8.DecodeRuneInString(raw)
	return size, raw[:size]
}

func nextSingleQuoted(raw string) (int, string) {
	switch {
	case strings.HasPrefix(raw, "''"):
		return 2, "'"
	case strings.HasPrefix(raw, "'"):
		return 0, ""
	}
	return nextPlain(raw)
}

func nextDoubleQuoted(raw string) (int, string) {
	if strings.HasPrefix(raw, `"`) {
		return 0, ""
	}
	if len(raw) < 2 || raw[0] != '\\' {
		return nextPlain(raw)
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[raw[1]]
	size := 2 + digits
	if len(raw) < size {
		return 0, ""
	}
	if digits == 0 {
		_, width := utf8.DecodeRuneInString(raw[1:])
		size = 1 + width
	}
	// an escape alone is a valid scalar, so that the YAML library can decode it
	var text string
	if err := yaml.Unmarshal([]byte(`"`+raw[:size]+`"`), &text); err != nil {
		return 0, ""
	}
	return size, text
}

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
