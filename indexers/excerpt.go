package indexers

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxShown is the maximum number of characters shown of a line: with the indentation, two lines of a
	// terminal.
	maxShown = 158
	// shownBefore is the number of them before the position in a line that continues after it.
	shownBefore = 60
	ellipsis    = "…"
)

// excerpt is the shown part of a line.
type excerpt struct {
	text string
	// before and length are the number of shown characters before and at the position. length is at least 1.
	before, length int
}

// excerpt cuts long lines, so that a finding does not repeat megabytes of JSON.
func (d Diagnostic) excerpt() excerpt {
	characters := utf8.RuneCountInString(d.Source)
	first := 0 // index of the first shown character
	if characters > maxShown {
		first = min(max(d.Column-1-shownBefore, 0), characters-maxShown)
	}
	last := min(first+maxShown, characters)
	var b strings.Builder
	if first > 0 {
		b.WriteString(ellipsis)
	}
	n := 0
	for _, r := range d.Source {
		if n >= last {
			break
		}
		if n >= first {
			b.WriteRune(replaceControl(r))
		}
		n++
	}
	if last < characters {
		b.WriteString(ellipsis)
	}
	e := excerpt{text: b.String(), before: max(d.Column-1-first, 0)}
	if first > 0 {
		e.before += utf8.RuneCountInString(ellipsis)
	}
	e.length = max(min(d.Length, last-d.Column+1), 1)
	return e
}

// replaceControl replaces control characters, which would move the caret or change the terminal.
func replaceControl(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case !unicode.IsPrint(r) && !unicode.Is(unicode.Co, r):
		return unicode.ReplacementChar
	}
	return r
}
