package cli_test

import (
	"fmt"
	"strings"
	"unicode"
)

// renderScreen returns the lines that a terminal with a number of columns shows after output, without
// trailing spaces. It supports control sequences that return to the start of a line, erase the rest of it,
// and change colors, which it drops. Any other control sequence is an error.
func renderScreen(output string, columns int) ([]string, error) {
	lines := [][]rune{{}}
	column := 0
	runes := []rune(output)
	for i := 0; i < len(runes); i++ {
		line := &lines[len(lines)-1]
		switch r := runes[i]; {
		case r == '\n':
			lines, column = append(lines, []rune{}), 0
		case r == '\r':
			column = 0
		case r == '\x1b':
			length, isKnown := parseEscapeSequence(runes[i:])
			if !isKnown {
				return nil, fmt.Errorf("a control sequence: %q", string(runes[i:min(i+20, len(runes))]))
			}
			if runes[i+length-1] == 'K' {
				*line = (*line)[:min(column, len(*line))]
			}
			i += length - 1
		case unicode.IsControl(r) && r != '\t':
			return nil, fmt.Errorf("a control character: %q", r)
		default:
			if column == columns {
				lines, column = append(lines, []rune{}), 0
				line = &lines[len(lines)-1]
			}
			*line = append((*line)[:min(column, len(*line))],
				append([]rune{r}, (*line)[min(column+1, len(*line)):]...)...)
			column++
		}
	}
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = strings.TrimRight(string(line), " ")
	}
	return shown, nil
}

// parseEscapeSequence parses "ESC [ numbers letter".
func parseEscapeSequence(runes []rune) (length int, isKnown bool) {
	if len(runes) < 3 || runes[1] != '[' {
		return 0, false
	}
	for i, r := range runes[2:] {
		switch {
		case r == 'K', r == 'm':
			return i + 3, true
		case r != ';' && (r < '0' || r > '9'):
			return 0, false
		}
	}
	return 0, false
}
