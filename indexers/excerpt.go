package indexers

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// widest is how many characters of a line are shown: with the indentation, two lines of a terminal.
	widest = 158
	// leading is how many of them are before the place, where there is something behind it, too.
	leading = 60
	gap     = "…"
)

// excerpt is the part of a line that is shown.
type excerpt struct {
	text string
	// before counts the characters before the place, and length those of the place that are shown, at least
	// 1.
	before, length int
}

// excerpt cuts the line, so that megabytes of JSON on one line do not come again with each finding.
func (d Diagnostic) excerpt() excerpt {
	characters := utf8.RuneCountInString(d.Source)
	first := 0 // of the characters that are shown
	if characters > widest {
		first = min(max(d.Column-1-leading, 0), characters-widest)
	}
	last := min(first+widest, characters)
	var b strings.Builder
	if first > 0 {
		b.WriteString(gap)
	}
	n := 0
	for _, r := range d.Source {
		if n >= last {
			break
		}
		if n >= first {
			b.WriteRune(shown(r))
		}
		n++
	}
	if last < characters {
		b.WriteString(gap)
	}
	e := excerpt{text: b.String(), before: max(d.Column-1-first, 0)}
	if first > 0 {
		e.before += utf8.RuneCountInString(gap)
	}
	e.length = max(min(d.Length, last-d.Column+1), 1)
	return e
}

// shown replaces what would move the caret or steer a terminal.
func shown(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case !unicode.IsPrint(r) && !unicode.Is(unicode.Co, r):
		return unicode.ReplacementChar
	}
	return r
}
