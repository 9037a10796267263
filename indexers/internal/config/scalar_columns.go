package config

import (
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// longestScalar bounds the work for one place.
const longestScalar = 64 << 10

// scalarColumns tells where each byte of a scalar's value is written: result[i] is the number of
// characters between the start of the scalar and what stands for byte i, and the last entry is for
// the end of the value. raw is the line from the start of the scalar on.
//
// It is only sure of itself when the whole scalar is on that line, without tag and anchor; block
// scalars and folded ones give false, and so do scalars beyond the length of any expression.
func scalarColumns(raw string, n *yaml.Node) (starts []int, ok bool) {
	var next func(raw string) (size int, text string)
	column := 0
	switch {
	case len(n.Value) > longestScalar:
		return nil, false
	case n.Style&yaml.DoubleQuotedStyle != 0:
		next, column = nextDoubleQuoted, 1
		if !strings.HasPrefix(raw, `"`) {
			return nil, false
		}
	case n.Style&yaml.SingleQuotedStyle != 0:
		next, column = nextSingleQuoted, 1
		if !strings.HasPrefix(raw, "'") {
			return nil, false
		}
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return nil, false
	default:
		next = nextPlain
	}
	raw = raw[column:]
	value := n.Value
	starts = make([]int, 0, len(value)+1)
	for value != "" {
		size, text := next(raw)
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

// The next functions give how many bytes the first character of a scalar takes, and what it stands
// for.

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
	// The library knows the escapes best, and an escape is a scalar of its own.
	var text string
	if err := yaml.Unmarshal([]byte(`"`+raw[:size]+`"`), &text); err != nil {
		return 0, ""
	}
	return size, text
}
