package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// File is the text of a source, split into lines like YAML does.
type File struct {
	name string
	// number is the number of the file in the config.
	number int
	lines  []string
	// ascii marks lines with one byte per character. Otherwise, large JSON on one line would be scanned for
	// each name in it.
	ascii []bool
}

// NewFile splits a text into lines.
func NewFile(name, text string) *File {
	f := &File{name: name, lines: splitLines(text)}
	f.ascii = make([]bool, len(f.lines))
	for i, line := range f.lines {
		f.ascii[i] = utf8.RuneCountInString(line) == len(line)
	}
	return f
}

// clear removes the text, so that findings do not show it.
func (f *File) clear() { f.lines, f.ascii = []string{""}, []bool{true} }

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

// Position is a range of characters within a line. Line and Column count from 1.
type Position struct{ Line, Column, Length int }

// String formats the position as "line:column".
func (p Position) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

// line returns a line by its number, or "".
func (f *File) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return f.lines[n-1]
}

// Finding returns a finding about a position, which is moved into the file if necessary.
func (f *File) Finding(code Code, at Position, message, hint string) Finding {
	at.Line = min(max(at.Line, 1), len(f.lines))
	source := f.line(at.Line)
	at.Column = min(max(at.Column, 1), utf8.RuneCountInString(source)+1)
	return Finding{
		File: f.name, Line: at.Line, Column: at.Column, Length: max(at.Length, 1),
		Code: code, Message: message, Hint: hint, Source: source, fileNumber: f.number,
	}
}

func (f *File) lineFrom(line, column int) string {
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

// PositionOf returns the position of a node: a whole scalar if it is on one line, otherwise its start.
func (f *File) PositionOf(n *yaml.Node) Position {
	at := Position{Line: n.Line, Column: n.Column, Length: 1}
	if n.Kind != yaml.ScalarNode {
		return at
	}
	starts, ok := scalarColumns(f.lineFrom(n.Line, n.Column), n)
	if !ok {
		return at
	}
	at.Length = max(starts[len(starts)-1], 1)
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		at.Length++ // the closing quote
	}
	return at
}

// Within returns the position of a range of bytes in a scalar's value.
func (f *File) Within(n *yaml.Node, offset, end int) Position {
	starts, ok := scalarColumns(f.lineFrom(n.Line, n.Column), n)
	if !ok {
		return Position{Line: n.Line, Column: n.Column, Length: 1}
	}
	last := len(starts) - 1
	offset, end = min(max(offset, 0), last), min(max(end, 0), last)
	return Position{Line: n.Line, Column: n.Column + starts[offset],
		Length: max(starts[end]-starts[offset], 1)}
}

// NewLine returns a file of one line without name.
func NewLine(text string) *File { return &File{lines: []string{text}, ascii: []bool{false}} }
