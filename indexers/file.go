package indexers

import (
	"fmt"
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

// line returns a line by its number, or "".
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
		for range len(text) {
			starts = append(starts, column)
		}
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
