package query

import (
	"strings"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// isPath reports whether a name is a path into objects rather than that of an index.
func isPath(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "$") }

// splitTerms splits what to sort by at its commas, but for those within the brackets and quotes of a path.
func splitTerms(text string) (terms []string) {
	start, depth, quote := 0, 0, rune(0)
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			if escaped = r == '\\'; r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '[' || r == '(':
			depth++
		case r == ']' || r == ')':
			depth--
		case r == ',' && depth <= 0:
			terms = append(terms, text[start:i])
			start = i + 1
		}
	}
	return append(terms, text[start:])
}

// splitDirection splits a term into a name or a path and its direction. Only the last word of a path can be
// one: a path may have spaces.
func splitDirection(text string) (name, direction string) {
	if !isPath(text) {
		name, direction, _ = strings.Cut(text, " ")
		return name, strings.TrimSpace(direction)
	}
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		if last := text[i+1:]; directions[last] != 0 {
			return strings.TrimSpace(text[:i]), last
		}
	}
	return text, ""
}

// directions are the words for them.
var directions = map[string]int{"asc": 1, "ascending": 1, "desc": -1, "descending": -1}

// ofPath gives what a path leads to first, in the order of the term: numbers and quantities come before
// times, and these before other text, as in an aggregation.
func (t *term) ofPath(m *meter) error {
	path, err := jsonpath.Compile(t.name)
	if err != nil {
		return &SortError{Text: t.name, Err: err}
	}
	t.body = true
	t.of = func(_ string, item any) (first sortValue) {
		for _, text := range textsOf(m, item, path) {
			if v := (sortValue{naturalKey(text), true}); !first.present || t.compare(v, first) < 0 {
				first = v
			}
		}
		return first
	}
	return nil
}
