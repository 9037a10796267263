package output

import (
	"strings"
	"unicode"
)

// Printable replaces everything in text that a terminal would act on, line breaks included.
func Printable(text string) string { return strings.Map(Visible, text) }

// Visible replaces a control character.
func Visible(r rune) rune {
	if unicode.IsControl(r) {
		return unicode.ReplacementChar
	}
	return r
}
