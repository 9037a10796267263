// Package complete tells what may come at a place in a query.
package complete

import (
	"regexp"
	"strings"
)

// Kind says what is expected at a place.
type Kind int

const (
	// Nothing can be proposed: a text of the user's own.
	Nothing Kind = iota
	// Term is the beginning of a condition.
	Term
	// Operator comes behind an index.
	Operator
	// Value comes behind an index and an operator.
	Value
	// Join comes behind a condition.
	Join
)

// Place is a place in a query.
type Place struct {
	Kind Kind
	// Word is what is written of it so far.
	Word string
	// Index is the index that an operator or a value is for.
	Index string
}

const operator = `(?:!=|==|=~|\^=|<=|>=|=|<|>)`

var (
	// condition is an index, an operator and the beginning of a value at the end of a text.
	condition = regexp.MustCompile(`([A-Za-z_][\w./-]*)\s*(` + operator +
		`|\bcontains\s|\bin\s*[(\[])\s*([^\s&|()\[\],]*|"[^"]*|'[^']*)$`)
	// more is a value behind others in a list of values.
	more = regexp.MustCompile(`([A-Za-z_][\w./-]*)\s+in\s*\([^()&|]*,\s*([^\s&|(),]*)$`)
	// behind is an index and blanks, with an operator or the beginning of one.
	behind = regexp.MustCompile(`(?:^|[\s(!,&|])([A-Za-z_][\w./-]*)\s+(c?o?n?t?a?i?n?s?|i?n?|[!=<>^]?)$`)
	// whole is a condition with a value and a blank behind it.
	whole = regexp.MustCompile(`(?:` + operator + `\s*(?:[^\s&|()"']+|"[^"]*"|'[^']*')|\))\s+([&|]?)$`)
	word  = regexp.MustCompile(`[A-Za-z_][\w./-]*(?:\([\w./-]*)?$`)
)

// At tells what may come at the end of a text, which is a query up to the cursor.
func At(text string) Place {
	if inFunction(text) {
		return Place{}
	}
	if m := whole.FindStringSubmatch(text); m != nil {
		return Place{Kind: Join, Word: m[1]}
	}
	if m := more.FindStringSubmatch(text); m != nil {
		return Place{Kind: Value, Index: m[1], Word: m[2]}
	}
	if m := condition.FindStringSubmatch(text); m != nil {
		return Place{Kind: Value, Index: m[1], Word: m[3]}
	}
	if strings.Count(text, `"`)%2 == 1 || strings.Count(text, "'")%2 == 1 {
		return Place{}
	}
	if m := behind.FindStringSubmatch(text); m != nil {
		return Place{Kind: Operator, Index: m[1], Word: m[2]}
	}
	return Place{Kind: Term, Word: word.FindString(text)}
}

var function = regexp.MustCompile(`\b(label|where|refersTo|referredBy)\([^)]*$`)

// inFunction reports whether a text ends between the parentheses of what takes a text of its own.
func inFunction(text string) bool { return function.MatchString(text) }

// Choice is an operator, and what it asks for.
type Choice struct{ Text, Note string }

// Operators are those of an index.
func Operators(sorted bool) []Choice {
	all := []Choice{{"=", "is"}, {"!=", "is not"}, {"in (", "one of several"},
		{"contains ", "has a text in it"}, {"=~", "fits a regular expression"}}
	if sorted {
		all = append(all, Choice{"^=", "begins with"}, Choice{"<", "before"}, Choice{"<=", "up to"},
			Choice{">", "after"}, Choice{">=", "from"}, Choice{"in [", "a range"})
	}
	return all
}
