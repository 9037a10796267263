package jsonpath

import (
	"errors"
	"strconv"
	"strings"
)

// parseBracketStep parses "[" selectors "]"; start is the start of the step, including a "..".
func (p *parser) parseBracketStep(start int, recursive bool) (Step, error) {
	open := p.pos
	p.pos++
	step := Step{Recursive: recursive, Offset: start}
	for {
		p.skipBlanks()
		s, err := p.parseSelector(open)
		if err != nil {
			return Step{}, err
		}
		step.Selectors = append(step.Selectors, s)
		p.skipBlanks()
		switch {
		case p.atEnd():
			return Step{}, p.unclosedBracketError(open)
		case p.peek() == ',':
			p.pos++
			continue
		case p.peek() == ']':
			p.pos++
			step.End = p.pos
			return step, nil
		}
		return Step{}, p.fail(CodeBracket, p.pos, p.charEnd(), `expected "," or "]"`,
			"unexpected %s in brackets", p.currentChar())
	}
}

func (p *parser) unclosedBracketError(open int) error {
	return p.fail(CodeUnclosed, open, open+1, `add "]"`, `"[" is never closed`)
}

func (p *parser) parseSelector(open int) (Selector, error) {
	from := p.pos
	var s Selector
	var err error
	switch c := p.peek(); {
	case p.atEnd():
		return s, p.unclosedBracketError(open)
	case c == '\'' || c == '"':
		s, err = p.parseQuotedKey()
	case c == '*':
		p.pos++
		s = Selector{Kind: SelectElements}
	case c == '?':
		s, err = p.parseFilterSelector()
	case c == '-' || c == ':' || isDigit(c):
		s, err = p.parseIndexOrSlice()
	case c == ']' || c == ',':
		return s, p.fail(CodeBracket, from, from+1, "write [*] for every element",
			"a selector is missing in brackets")
	case c == '(':
		return s, p.fail(CodeFunction, from, from+1, "write [-1] for the last element, [?(...)] for a filter",
			"script expressions are not supported")
	case c == '@' || c == '.' || c == '$' || c == '!':
		return s, p.fail(CodeBracket, from, from+1, "write a filter as [?(...)]",
			"unexpected %s in brackets", p.currentChar())
	case canStartName(c):
		return s, p.unquotedKeyError(open)
	default:
		return s, p.fail(CodeBracket, from, p.charEnd(), "", "unexpected %s in brackets", p.currentChar())
	}
	s.Offset, s.End = from, p.pos
	return s, err
}

func (p *parser) unquotedKeyError(open int) error {
	to := p.pos
	for to < len(p.src) && strings.IndexByte(`],'"`, p.src[to]) < 0 {
		to++
	}
	name := strings.TrimRight(p.src[p.pos:to], " \t\r\n")
	hint := "write ['" + strings.Trim(name, typographicQuotes) + "']"
	if before := strings.TrimRight(p.src[:open], " \t\r\n"); looksLikeConditionType(name) ||
		strings.HasSuffix(before, "onditions") {
		hint = `write [?(@.type=="` + name + `")] for the element of that type, or ['` + name + `'] for a key`
	}
	return p.fail(CodeBracket, p.pos, p.pos+len(name), hint, "a key in brackets needs quotes")
}

// looksLikeConditionType reports whether a name looks like a condition type, such as Ready, and no key.
func looksLikeConditionType(name string) bool {
	for i := range len(name) {
		if !isLetter(name[i]) && (i == 0 || !isDigit(name[i])) {
			return false
		}
	}
	return name != "" && name[0] >= 'A' && name[0] <= 'Z'
}

// parseQuotedKey parses 'key' or "key".
func (p *parser) parseQuotedKey() (Selector, error) {
	from := p.pos
	name, err := p.parseString(quotedKey)
	if err != nil {
		return Selector{}, err
	}
	// A double-quoted key is unambiguous in kubectl, and so is \. in a key: no warning.
	if text := p.src[from+1 : p.pos-1]; p.src[from] == '\'' {
		if keys := splitKey(text); len(keys) > 1 || text == "*" {
			p.warn(CodeOneKey, from, p.pos, "kubectl reads "+strings.Join(keys, " → "),
				"['%s'] is read as one key", text)
		}
	}
	return Selector{Kind: SelectName, Name: name}, nil
}

// splitKey splits a quoted key at the dots at which kubectl splits it.
func splitKey(text string) []string {
	keys := strings.Split(text, ".")
	for i := 0; i < len(keys)-1; {
		if head, escaped := strings.CutSuffix(keys[i], `\`); escaped {
			keys[i] = head + "." + keys[i+1]
			keys = append(keys[:i+1], keys[i+2:]...)
			continue
		}
		i++
	}
	return keys
}

func (p *parser) parseIndexOrSlice() (Selector, error) {
	start, hasStart, err := p.parseBound()
	if err != nil {
		return Selector{}, err
	}
	p.skipBlanks()
	if p.peek() != ':' {
		return Selector{Kind: SelectIndex, Index: start}, nil
	}
	s := Slice{Start: start, HasStart: hasStart, Step: 1}
	p.pos++
	if s.End, s.HasEnd, err = p.parseBound(); err != nil {
		return Selector{}, err
	}
	p.skipBlanks()
	if p.peek() == ':' {
		p.pos++
		p.skipBlanks()
		at := p.pos
		step, has, err := p.parseBound()
		if err != nil {
			return Selector{}, err
		}
		if has && step == 0 {
			return Selector{}, p.fail(CodeIndex, at, p.pos, "leave it out for every element",
				"a step of 0 selects nothing")
		}
		if has {
			s.Step = step
		}
	}
	return Selector{Kind: SelectSlice, Slice: s}, nil
}

// parseBound parses an optional integer.
func (p *parser) parseBound() (n int, has bool, err error) {
	p.skipBlanks()
	from := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	digits := p.pos
	for isDigit(p.peek()) {
		p.pos++
	}
	text := p.src[from:p.pos]
	switch {
	case text == "":
		return 0, false, nil
	case p.pos == digits:
		return 0, false, p.fail(CodeIndex, from, p.pos, "", `"-" without a number`)
	case p.src[digits] == '0' && p.pos > digits+1:
		return 0, false, p.fail(CodeIndex, from, p.pos, "", "%s starts with a zero", text)
	case p.peek() == '.' || p.peek() != ':' && canStartName(p.peek()):
		return 0, false, p.fail(CodeIndex, from, p.charEnd(), "quote it as ['...'] if it is a key",
			"an index is a whole number")
	}
	n, err = strconv.Atoi(text)
	if errors.Is(err, strconv.ErrRange) {
		return 0, false, p.fail(CodeIndex, from, p.pos, "", "%s is out of range", text)
	}
	return n, true, err
}
