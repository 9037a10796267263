package config

import (
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// maxScalarLength is the maximum length of a scalar with exact positions.
const maxScalarLength = 64 << 10

// scalarColumns returns the column of each byte of a scalar's value, and last the column of its end. Columns
// are relative to the start of the scalar. raw is the line from the start of the scalar on.
//
// ok is false if the scalar spans lines, has a tag or an anchor, or is longer than maxScalarLength.
func scalarColumns(raw string, n *yaml.Node) (starts []int, ok bool) {
	var next func(raw string) (size int, text string)
	column := 0
	switch {
	case len(n.Value) > maxScalarLength:
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

// The next functions return the size of the first character in the source and its decoded text.

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
	// an escape alone is a valid scalar, so that the YAML library can decode it
	var text string
	if err := yaml.Unmarshal([]byte(`"`+raw[:size]+`"`), &text); err != nil {
		return 0, ""
	}
	return size, text
}
