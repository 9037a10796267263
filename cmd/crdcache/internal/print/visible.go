package print

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces everything in text that a terminal would act on, line breaks included.
func Printable(text string) string { return strings.Map(Visible, text) }

// Visible replaces a character that a terminal would act on.
func Visible(r rune) rune {
	if steers(r) {
		return replacement()
	}
	return r
}

// steers reports whether a terminal does something else with r than to show it. Besides control characters these are
// the ones that begin and end another line, or that turn the direction of all that follows: with them a name shows
// as another one, and the columns of a table change places.
func steers(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r == '\u2028', r == '\u2029':
		return true
	}
	return '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069'
}

// replacement is shown in place of a character that is not.
func replacement() rune {
	if Unicode() {
		return unicode.ReplacementChar
	}
	return '?'
}

// MaxLine bounds a line in runes: what a server or a file says may be a whole web page.
const MaxLine = 2000

// Line makes text a part of a line that is safe to show on a terminal, and not too long.
func Line(text string) string {
	return Cut(Printable(strings.Join(strings.Fields(text), " ")), MaxLine)
}

// Cut shortens text to so many characters, of which the last ones then tell that there was more.
func Cut(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	end := Ellipsis()
	keep := max(most-utf8.RuneCountInString(end), 0)
	for i := range text {
		if keep == 0 {
			return text[:i] + end
		}
		keep--
	}
	return text
}
