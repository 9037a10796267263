package web

import (
	"regexp"
	"strings"
)

type completionKind int

const (
	// noCompletion is returned for free text.
	noCompletion completionKind = iota
	completeCondition
	completeOperator
	completeValue
	completeConnective
)

type completionPosition struct {
	Kind completionKind
	// Word is the typed beginning of the completion.
	Word string
	// Index is the index of an operator or a value.
	Index string
}

const operatorPattern = `(?:!=|==|=~|\^=|<=|>=|=|<|>)`

var (
	// valueStart matches an index, an operator and the beginning of a value at the end of a text.
	valueStart = regexp.MustCompile(`([A-Za-z_][\w./-]*)\s*(` + operatorPattern +
		`|\bcontains\s|\bin\s*[(\[])\s*([^\s&|()\[\],]*|"[^"]*|'[^']*)$`)
	// listValue matches a further value in a list of values.
	listValue = regexp.MustCompile(`([A-Za-z_][\w./-]*)\s+in\s*\([^()&|]*,\s*([^\s&|(),]*)$`)
	// operatorStart matches an index, blanks, and optionally the beginning of an operator.
	operatorStart = regexp.MustCompile(`(?:^|[\s(!,&|])([A-Za-z_][\w./-]*)\s+(c?o?n?t?a?i?n?s?|i?n?|[!=<>^]?)$`)
	// conditionEnd matches a condition with a value and a blank after it.
	conditionEnd = regexp.MustCompile(`(?:` + operatorPattern +
		`\s*(?:[^\s&|()"']+|"[^"]*"|'[^']*')|\))\s+([&|]?)$`)
	wordPattern = regexp.MustCompile(`[A-Za-z_][\w./-]*(?:\([\w./-]*)?$`)
)

// positionAt returns the kind of completion at the end of text. text is a query up to the cursor.
func positionAt(text string) completionPosition {
	if endsInFunction(text) {
		return completionPosition{}
	}
	if m := conditionEnd.FindStringSubmatch(text); m != nil {
		return completionPosition{Kind: completeConnective, Word: m[1]}
	}
	if m := listValue.FindStringSubmatch(text); m != nil {
		return completionPosition{Kind: completeValue, Index: m[1], Word: m[2]}
	}
	if m := valueStart.FindStringSubmatch(text); m != nil {
		return completionPosition{Kind: completeValue, Index: m[1], Word: m[3]}
	}
	if strings.Count(text, `"`)%2 == 1 || strings.Count(text, "'")%2 == 1 {
		return completionPosition{}
	}
	if m := operatorStart.FindStringSubmatch(text); m != nil {
		return completionPosition{Kind: completeOperator, Index: m[1], Word: m[2]}
	}
	return completionPosition{Kind: completeCondition, Word: wordPattern.FindString(text)}
}

var referenceFunctionPattern = regexp.MustCompile(`\b(label|where|refersTo|referredBy)\([^)]*$`)

// endsInFunction reports whether text ends between the parentheses of a function with free text.
func endsInFunction(text string) bool { return referenceFunctionPattern.MatchString(text) }

func operatorChoices(sorted bool) []proposal {
	choices := []proposal{{"=", "is"}, {"!=", "is not"}, {"in (", "one of several"},
		{"contains ", "contains a text"}, {"=~", "matches a regular expression"}}
	if sorted {
		choices = append(choices, proposal{"^=", "begins with"}, proposal{"<", "before"}, proposal{"<=", "up to"},
			proposal{">", "after"}, proposal{">=", "from"}, proposal{"in [", "a range"})
	}
	return choices
}
