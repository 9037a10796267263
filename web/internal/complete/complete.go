// Package complete finds the completions at a position in a query.
package complete

import (
	"regexp"
	"strings"
)

// Kind is the kind of completion expected at a position.
type Kind int

const (
	// Nothing can be completed: the text is free.
	Nothing Kind = iota
	// ConditionStart is the beginning of a condition.
	ConditionStart
	// Operator follows an index.
	Operator
	// Value follows an index and an operator.
	Value
	// AfterCondition follows a condition.
	AfterCondition
)

// Position is a position in a query.
type Position struct {
	Kind Kind
	// Word is the beginning of the completion that is already typed.
	Word string
	// Index is the index of an operator or a value.
	Index string
}

const operator = `(?:!=|==|=~|\^=|<=|>=|=|<|>)`

var (
	// condition matches an index, an operator and the beginning of a value at the end of a text.
	condition = regexp.MustCompile(`([A-Za-z_][\w./-]*)\s*(` + operator +
		`|\bcontains\s|\bin\s*[(\[])\s*([^\s&|()\[\],]*|"[^"]*|'[^']*)$`)
	// listValue matches a further value in a list of values.
	listValue = regexp.MustCompile(`([A-Za-z_][\w./-]*)\s+in\s*\([^()&|]*,\s*([^\s&|(),]*)$`)
	// operatorStart matches an index, blanks, and optionally the beginning of an operator.
	operatorStart = regexp.MustCompile(`(?:^|[\s(!,&|])([A-Za-z_][\w./-]*)\s+(c?o?n?t?a?i?n?s?|i?n?|[!=<>^]?)$`)
	// completeCondition matches a condition with a value and a blank after it.
	completeCondition = regexp.MustCompile(`(?:` + operator + `\s*(?:[^\s&|()"']+|"[^"]*"|'[^']*')|\))\s+([&|]?)$`)
	word              = regexp.MustCompile(`[A-Za-z_][\w./-]*(?:\([\w./-]*)?$`)
)

// PositionAt returns the kind of completion at the end of text, which is a query up to the cursor.
func PositionAt(text string) Position {
	if inFunction(text) {
		return Position{}
	}
	if m := completeCondition.FindStringSubmatch(text); m != nil {
		return Position{Kind: AfterCondition, Word: m[1]}
	}
	if m := listValue.FindStringSubmatch(text); m != nil {
		return Position{Kind: Value, Index: m[1], Word: m[2]}
	}
	if m := condition.FindStringSubmatch(text); m != nil {
		return Position{Kind: Value, Index: m[1], Word: m[3]}
	}
	if strings.Count(text, `"`)%2 == 1 || strings.Count(text, "'")%2 == 1 {
		return Position{}
	}
	if m := operatorStart.FindStringSubmatch(text); m != nil {
		return Position{Kind: Operator, Index: m[1], Word: m[2]}
	}
	return Position{Kind: ConditionStart, Word: word.FindString(text)}
}

var function = regexp.MustCompile(`\b(label|where|refersTo|referredBy)\([^)]*$`)

// inFunction reports whether text ends between the parentheses of a function with free text.
func inFunction(text string) bool { return function.MatchString(text) }

// Choice is an operator with its meaning.
type Choice struct{ Text, Note string }

// Operators returns the operators of an index.
func Operators(sorted bool) []Choice {
	all := []Choice{{"=", "is"}, {"!=", "is not"}, {"in (", "one of several"},
		{"contains ", "contains a text"}, {"=~", "matches a regular expression"}}
	if sorted {
		all = append(all, Choice{"^=", "begins with"}, Choice{"<", "before"}, Choice{"<=", "up to"},
			Choice{">", "after"}, Choice{">=", "from"}, Choice{"in [", "a range"})
	}
	return all
}
