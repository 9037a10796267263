package indexers

import (
	"fmt"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// file is the text of a source, cut into lines as YAML cuts it.
type file struct {
	name  string
	lines []string
	// ascii lines have one byte per character. Without this, JSON of megabytes on one line would be
	// walked through for each name in it.
	ascii []bool
}

func newFile(name, text string) *file {
	f := &file{name: name, lines: splitLines(text)}
	f.ascii = make([]bool, len(f.lines))
	for i, line := range f.lines {
		f.ascii[i] = utf8.RuneCountInString(line) == len(line)
	}
	return f
}

// splitLines cuts at all that ends a line in YAML 1.1: besides CR, LF and both, the three line breaks
// of Unicode. The YAML library counts lines the same way.
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

// place is a stretch of one line; all of it counts from 1, in characters.
type place struct{ line, column, length int }

// String formats the place as "file:line:column" does without the file.
func (p place) String() string { return fmt.Sprintf("%d:%d", p.line, p.column) }

// line returns the line of that number, or "".
func (f *file) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return f.lines[n-1]
}

// diagnostic makes a finding about a place, which is moved into the file if it should lie outside.
func (f *file) diagnostic(code Code, at place, message, hint string) Diagnostic {
	at.line = min(max(at.line, 1), len(f.lines))
	source := f.line(at.line)
	at.column = min(max(at.column, 1), utf8.RuneCountInString(source)+1)
	return Diagnostic{
		File: f.name, Line: at.line, Column: at.column, Length: max(at.length, 1),
		Code: code, Message: message, Hint: hint, Source: source,
	}
}

// from returns the rest of a line from a column on.
func (f *file) from(line, column int) string {
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

// placeOf gives the place of a node: all of a scalar that is on one line, else where it begins.
func (f *file) placeOf(n *yaml.Node) place {
	at := place{line: n.Line, column: n.Column, length: 1}
	if n.Kind != yaml.ScalarNode {
		return at
	}
	starts, ok := scalarColumns(f.from(n.Line, n.Column), n)
	if !ok {
		return at
	}
	at.length = max(starts[len(starts)-1], 1)
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		at.length++ // the closing quote
	}
	return at
}

// within gives the place of the bytes from offset to end of a scalar's value.
func (f *file) within(n *yaml.Node, offset, end int) place {
	starts, ok := scalarColumns(f.from(n.Line, n.Column), n)
	if !ok {
		return place{line: n.Line, column: n.Column, length: 1}
	}
	last := len(starts) - 1
	offset, end = min(max(offset, 0), last), min(max(end, 0), last)
	return place{line: n.Line, column: n.Column + starts[offset], length: max(starts[end]-starts[offset], 1)}
}
