package outline

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// plainText matches texts that every YAML version reads as strings without quotes, unless ambiguousWord
// matches them too, or they contain ": " or end with ":". It is stricter than necessary.
var plainText = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./:@+-]*( [A-Za-z0-9_./:@+(-][A-Za-z0-9_./:@+(),-]*)*$`)

// ambiguousWord matches words that some YAML parsers read as booleans, numbers or null.
var ambiguousWord = regexp.MustCompile(`(?i)^(y|yes|n|no|true|false|on|off|null|nan|inf|[.]inf|[.]nan|e[0-9]+)$`)

// yamlScalar returns a text as a YAML scalar on one line, in double quotes if necessary.
func yamlScalar(text string) string {
	if plainText.MatchString(text) && !ambiguousWord.MatchString(text) && !strings.Contains(text, ": ") &&
		!strings.HasSuffix(text, ":") {
		return text
	}
	return escapeInvisible(jsontext.Compact(text))
}

// escapeInvisible escapes characters that JSON does not escape, and that are invisible or line breaks in
// YAML.
func escapeInvisible(text string) string {
	if !strings.ContainsFunc(text, isHidden) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case !isHidden(r):
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// blockLines splits a text for a literal block. It returns false unless the text has several lines of
// printable characters, at most one newline at the end, and no trailing spaces.
func blockLines(text string) ([]string, bool) {
	body := strings.TrimSuffix(text, "\n")
	if !strings.Contains(body, "\n") || strings.HasSuffix(body, "\n") || !utf8.ValidString(text) {
		return nil, false
	}
	lines := strings.Split(body, "\n")
	if lines[0] == "" || lines[0][0] == ' ' || lines[0][0] == '\t' {
		return nil, false // needs an indentation indicator
	}
	for _, line := range lines {
		if strings.TrimRight(line, " \t") != line || strings.ContainsFunc(line, isHidden) {
			return nil, false
		}
	}
	return lines, true
}

// isHidden reports whether a character is not allowed in a block, or changes the text direction.
func isHidden(r rune) bool {
	return r != '\t' && !unicode.IsGraphic(r) || r == '\u0085' || r == '\u2028' ||
		r == '\u2029' || r == '\ufeff'
}
