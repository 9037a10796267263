package query

import (
	"strings"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// isPath reports whether a name is a path rather than the name of an index.
func isPath(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "$") }

// splitTerms splits a text at its commas, except within brackets and quotes.
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

// splitDirection splits a term into a name or path and its direction. A path can contain spaces, so that only
// its last word can be a direction.
func splitDirection(text string) (name, direction string) {
	if !isPath(text) {
		name, direction, _ = strings.Cut(text, " ")
		return name, strings.TrimSpace(direction)
	}
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		if last := text[i+1:]; sortDirections[last] != 0 {
			return strings.TrimSpace(text[:i]), last
		}
	}
	return text, ""
}

// sortDirections maps the words for a direction to 1 (ascending) or -1.
var sortDirections = map[string]int{"asc": 1, "ascending": 1, "desc": -1, "descending": -1}

// compilePath sorts a term by the first value at its path, in the natural order.
func (t *term) compilePath(c *compiler) error {
	path, err := jsonpath.Compile(t.name)
	if err != nil {
		return &SortError{Text: t.name, Err: err}
	}
	if err := checkStored(c.snapshot, path); err != nil {
		return err
	}
	t.readsBody = true
	t.valueOf = func(_ string, item any) (first sortValue) {
		for _, text := range textsOf(c.meter, item, path) {
			if v := (sortValue{naturalOrderKey(text), true}); !first.present || t.compare(v, first) < 0 {
				first = v
			}
		}
		return first
	}
	return nil
}
