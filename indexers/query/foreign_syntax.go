package query

import (
	"fmt"
	"strings"
)

// foreignWords are comparison words of other languages, with hints in which INDEX and VALUE are replaced.
var foreignWords = map[string]string{
	"not":        "a negation is written !(INDEX in (VALUE)), or INDEX!=VALUE",
	"notin":      "a negation is written !(INDEX in (VALUE)), or INDEX!=VALUE",
	"is":         "a value is written INDEX=VALUE; INDEX alone means that there is one, and !INDEX that there is none",
	"eq":         "equality is written INDEX=VALUE",
	"ne":         "inequality is written INDEX!=VALUE",
	"lt":         "an order is written INDEX<VALUE",
	"gt":         "an order is written INDEX>VALUE",
	"exists":     "INDEX alone means that there is a value, and !INDEX that there is none",
	"like":       "a prefix is written INDEX^=VALUE",
	"startswith": "a prefix is written INDEX^=VALUE",
	"between":    "a range is written INDEX in [1, 10), without its end",
}

// rejectWordOperator rejects "and" and "or".
func (p *parser) rejectWordOperator() error {
	p.skipBlanks()
	start := p.pos
	word := strings.ToLower(p.peekName())
	replacement := map[string]string{"and": "&&", "or": "||"}[word]
	if replacement == "" {
		return nil
	}
	p.pos += len(word)
	return p.failAt(start, "%q is not allowed here; write %s", p.text[start:p.pos], replacement)
}

// rejectWordComparison rejects the foreignWords after an index.
func (p *parser) rejectWordComparison(index string) error {
	p.skipBlanks()
	start := p.pos
	word := p.peekName()
	hint := foreignWords[strings.ToLower(word)]
	if hint == "" {
		return nil
	}
	p.pos += len(word)
	rest := strings.TrimLeft(p.text[p.pos:], " \t\r\n(")
	if in, ok := strings.CutPrefix(rest, "in"); ok && strings.EqualFold(word, "not") &&
		(in == "" || !isName(in[0])) {
		p.pos = len(p.text) - len(in)
		rest = strings.TrimLeft(in, " \t\r\n(")
	}
	end := p.pos
	p.pos = len(p.text) - len(rest)
	value := "x"
	if v, err := p.literal(); err == nil {
		value = v
	}
	p.pos = end
	if !needsNoQuotes(value) {
		value = quoted(value)
	}
	for _, fill := range [][2]string{{"INDEX", index}, {"VALUE", value}} {
		hint = strings.ReplaceAll(hint, fill[0], fill[1])
	}
	return p.failAt(start, "%q is not allowed here; %s", p.text[start:end], hint)
}

// rejectNot rejects "not" before a condition.
func (p *parser) rejectNot(name string, start int) error {
	if !strings.EqualFold(name, "not") {
		return nil
	}
	rest := strings.TrimLeft(p.text[p.pos:], " \t\r\n")
	if rest == "" || rest[0] != '(' && (!isName(rest[0]) || p.wordFollows("in", "and", "or")) {
		return nil // an index named "not"
	}
	return p.failAt(start, "%q is not allowed here; a negation is written !team, team!=edge or "+
		"!(team=edge && tier=web)", name)
}

// rejectWildcard rejects a pattern such as prod*. text is the part before the star.
func (p *parser) rejectWildcard(c *comparison, text string) error {
	if !strings.HasPrefix(p.text[p.pos:], "*") {
		return nil
	}
	start := p.pos
	p.pos++
	switch {
	case text == "":
		return p.failAt(start, `"*" is not a wildcard; %s alone means that there is a value`, c.index)
	case p.pos == len(p.text) || !isBare(rune(p.text[p.pos])):
		return p.failAt(start, `"*" is not a wildcard; a prefix is written %s^=%s`, c.index, text)
	}
	return p.
		failAt(start, `"*" is not a wildcard; a substring is written %s contains %s, and a regular `+
			`expression %[1]s=~"^%[2]s"`, c.index, text)
}

// peekName returns the next word without consuming it.
func (p *parser) peekName() string {
	end := p.pos
	for end < len(p.text) && isName(p.text[end]) {
		end++
	}
	return p.text[p.pos:end]
}

// wordFollows reports whether one of some words comes next, after blanks.
func (p *parser) wordFollows(words ...string) bool {
	at := p.pos
	defer func() { p.pos = at }()
	p.skipBlanks()
	next := p.peekName()
	for _, w := range words {
		if strings.EqualFold(next, w) {
			return true
		}
	}
	return false
}

// rejectForeignOperator rejects operators of other languages.
func (p *parser) rejectForeignOperator(index string) error {
	start := p.pos
	for text, hint := range map[string]string{
		"<>": "inequality is written %s!=x", "!~": "a negation is written !(%s=~\"x\")",
		"===": "equality is written %s=x", "~": "a regular expression is written %s=~\"x\"",
		"$=": "a regular expression is written %s=~\"x$\"",
		"*=": "a substring is written %s contains x",
	} {
		if strings.HasPrefix(p.text[p.pos:], text) {
			p.pos += len(text)
			return p.failAt(start, "%q is not allowed here; %s", text, fmt.Sprintf(hint, index))
		}
	}
	return nil
}
