package print

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// Printable replaces all characters that control a terminal, including line breaks.
func Printable(text string) string { return strings.Map(ReplaceControl, text) }

// ReplaceControl returns r, or a replacement if r controls a terminal.
func ReplaceControl(r rune) rune {
	switch {
	case !isControl(r):
		return r
	case SupportsUnicode():
		return unicode.ReplacementChar
	}
	return '?'
}

// isControl reports whether r is a control character, a Unicode line separator, or a bidirectional control. A
// bidirectional control can make a name look like another name, or swap columns.
func isControl(r rune) bool {
	return unicode.IsControl(r) || '\u2028' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069'
}

// MaxLineLength bounds a line, in characters: an error of a server can have a whole web page.
const MaxLineLength = 2000

// OneSafeLine returns text as one line of limited length without control characters.
func OneSafeLine(text string) string {
	return Truncate(Printable(strings.Join(strings.Fields(text), " ")), MaxLineLength)
}

// Truncate shortens text to maxLength characters. A shortened text ends with an ellipsis.
func Truncate(text string, maxLength int) string {
	characters := []rune(text)
	if len(characters) <= maxLength {
		return text
	}
	end := []rune(Ellipsis())
	return string(append(characters[:max(maxLength-len(end), 0)], end...))
}

// SupportsUnicode reports whether symbols outside ASCII may be printed. Without a locale it returns true,
// because many containers set none.
func SupportsUnicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first set variable decides
		if locale := os.Getenv(name); locale != "" {
			charset := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(locale))
			return strings.Contains(charset, "utf8")
		}
	}
	return true
}

func Symbol(unicode, ascii string) string {
	if SupportsUnicode() {
		return unicode
	}
	return ascii
}

// Ellipsis marks omitted text.
func Ellipsis() string { return Symbol("…", "...") }

// Warnf writes a warning in one line of limited length without control characters.
func Warnf(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "warning: %s\n", OneSafeLine(fmt.Sprintf(format, args...)))
}
