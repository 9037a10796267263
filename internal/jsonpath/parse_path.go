package jsonpath

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parsePath parses a whole path expression, with or without braces.
func (p *parser) parsePath() ([]Step, error) {
	if err := p.checkInput(); err != nil {
		return nil, err
	}
	if p.peek() != '{' {
		return p.parseUnbraced()
	}
	open := p.pos
	if p.hasPrefix("{{") {
		return nil, p.fail(CodeUnexpected, open, open+2, "write one pair of braces, or none",
			`"{{" belongs to Go templates`)
	}
	p.pos++
	p.skipBlanks()
	if err := p.rejectRange(true); err != nil {
		return nil, err
	}
	if p.peek() == '}' {
		return nil, p.fail(CodeEmpty, open, p.pos+1, `write "{$}" for the whole object`,
			"the braces are empty")
	}
	steps, err := p.parseRooted()
	if err != nil {
		return nil, err
	}
	p.skipBlanks()
	if p.atEnd() {
		return nil, p.fail(CodeUnclosed, open, open+1, `add "}" at the end`, `"{" is never closed`)
	}
	if p.peek() != '}' {
		return nil, p.unexpectedError()
	}
	p.pos++
	return steps, p.parseAfterBraces()
}

// parseUnbraced parses a path without braces.
func (p *parser) parseUnbraced() ([]Step, error) {
	if err := p.rejectRange(false); err != nil {
		return nil, err
	}
	start := p.pos
	steps, err := p.parseRooted()
	if err == nil {
		p.skipBlanks()
		if p.atEnd() {
			return steps, nil
		}
		err = p.unexpectedError()
	}
	// report "Name: {.metadata.name}" as a kubectl template, whatever the first error is; a filter is none
	if brace := strings.IndexByte(p.src[start:], '{'); brace > 0 && p.pos <= start+brace &&
		!(strings.ContainsAny(p.src[start:start+1], "$@.[") && strings.Contains(p.src[start:start+brace], "[?")) {
		return nil, p.fail(CodeLiteralText, start, start+brace, "a path is one {...} and nothing else",
			"text outside the braces")
	}
	return nil, err
}

func (p *parser) parseAfterBraces() error {
	p.skipBlanks()
	switch {
	case p.atEnd():
		return nil
	case p.peek() == '{':
		return p.fail(CodeManyTemplates, p.pos, p.pos+1, "give each path on its own", "more than one {...}")
	}
	return p.fail(CodeLiteralText, p.pos, len(p.src), "a path is one {...} and nothing else",
		"text outside the braces")
}

// rejectRange rejects the loop keywords of kubectl: "range ", and "end" unless it can be a field's name.
func (p *parser) rejectRange(inBraces bool) error {
	word := p.peekWord()
	next := p.peekAt(len(word))
	isRangeLoop := word == "range" && (isBlank(next) || inBraces && next == '}')
	if !isRangeLoop && !(word == "end" && inBraces && (isBlank(next) || next == '}')) {
		return nil
	}
	return p.fail(CodeRange, p.pos, p.pos+len(word), "use [*] to visit every element",
		"%s is not supported", word)
}

// parseRooted parses an optional "$" or "@" and the steps. The first name needs no dot, as in spec.x.
func (p *parser) parseRooted() ([]Step, error) {
	switch c := p.peek(); {
	case c == '$' || c == '@':
		p.rooted = c == '$'
		p.pos++
		if !p.atEnd() && canStartName(p.peek()) {
			return nil, p.fail(CodeUnexpected, p.pos, p.charEnd(), `write "`+string(c)+`."`,
				`%s directly after %q`, p.currentChar(), string(c))
		}
		return p.parseSteps(nil)
	case c == '.' && (p.pos+1 == len(p.src) || isBlank(p.peekAt(1)) || p.peekAt(1) == '}'):
		return nil, p.fail(CodeName, p.pos, p.pos+1, `write "$" for the whole object`,
			`"." alone names nothing`)
	case c == '.' || c == '[':
		return p.parseSteps(nil)
	case c == '*':
		return nil, p.fail(CodeName, p.pos, p.pos+1, `write ".*"`, `"*" needs a dot before it`)
	case p.atEnd() || !canStartName(c):
		return nil, p.unexpectedError()
	}
	first, err := p.parseNameStep(p.pos, false)
	if err != nil {
		return nil, err
	}
	return p.parseSteps([]Step{first})
}

// parseSteps parses consecutive ".name", "..name" and "[...]". It skips blanks between steps only.
func (p *parser) parseSteps(steps []Step) ([]Step, error) {
	for {
		last := p.pos
		p.skipBlanks()
		var step Step
		var err error
		switch p.peek() {
		case '.':
			step, err = p.parseDot()
		case '[':
			step, err = p.parseBracketStep(p.pos, false)
		default:
			p.pos = last
			return steps, nil
		}
		if err != nil {
			return nil, err
		}
		if len(steps) > 0 && isFilter(steps[len(steps)-1]) && isFilter(step) && !step.Recursive {
			p.warn(CodeFilterTwice, step.Offset, step.End,
				"use && for a second condition on the same elements",
				"a filter after a filter looks inside each element")
		}
		steps = append(steps, step)
	}
}

func isFilter(s Step) bool { return len(s.Selectors) == 1 && s.Selectors[0].Kind == SelectFilter }

func (p *parser) parseDot() (Step, error) {
	start := p.pos
	p.pos++
	recursive := false
	if p.peek() == '.' {
		recursive = true
		p.pos++
		p.warn(CodeRecursive, start, p.pos, "name the fields on the way where you can",
			`".." visits everything below, in every object`)
		if p.peek() == '.' {
			return Step{}, p.fail(CodeName, start, p.pos+1, `write ".." or "."`, `"..." is too many dots`)
		}
	}
	p.skipBlanks()
	switch c := p.peek(); {
	case c == '[' && recursive:
		return p.parseBracketStep(start, true)
	case c == '[':
		return Step{}, p.fail(CodeName, start, p.pos+1, "leave out the dot", `"." before "["`)
	case c == '*':
		p.pos++
		if !p.atEnd() && canStartName(p.peek()) {
			return Step{}, p.starInNameError(p.pos - 1)
		}
		return Step{recursive, []Selector{{Kind: SelectMembers, Offset: start, End: p.pos}},
			start, p.pos}, nil
	case p.atEnd() || !canStartName(c):
		dots, hint := ".", ""
		if recursive {
			dots, hint = "..", `follow it with a name, "*" or "[...]"`
		}
		return Step{}, p.fail(CodeName, start, p.pos, hint, "no name after %q", dots)
	}
	return p.parseNameStep(start, recursive)
}

// parseNameStep parses an unquoted name; start is the start of the step, including its dot.
func (p *parser) parseNameStep(start int, recursive bool) (Step, error) {
	from := p.pos
	var b strings.Builder
	hasEscape := false
	for !p.atEnd() {
		c := p.src[p.pos]
		if c == '\\' {
			hasEscape = true
			p.pos++
			if p.atEnd() {
				return Step{}, p.fail(CodeName, p.pos-1, p.pos, "", `"\" at the end escapes nothing`)
			}
			next := p.charEnd()
			b.WriteString(p.src[p.pos:next])
			p.pos = next
			continue
		}
		if !isNameByte(c) {
			break
		}
		if lookalike := describeLookalike(p.src[p.pos:]); lookalike != "" {
			p.warn(CodeLookalike, p.pos, p.charEnd(),
				"remove it, or put the name in brackets and plain quotes",
				"%s is read as part of a name", lookalike)
		}
		b.WriteByte(c)
		p.pos++
	}
	if p.peek() == '*' {
		return Step{}, p.starInNameError(p.pos)
	}
	name := b.String()
	if _, err := strconv.ParseUint(name, 10, 64); !hasEscape && err == nil {
		p.warn(CodeNumericKey, from, p.pos, "write ["+name+"] for an index", "%s is read as a key", name)
	}
	return Step{recursive, []Selector{{Kind: SelectName, Name: name, Offset: from, End: p.pos}},
		start, p.pos}, nil
}

func (p *parser) starInNameError(at int) error {
	return p.fail(CodeName, at, at+1, `write "\*" for a star in a name`, `"*" is part of a name here`)
}

// isNameByte reports whether c, which may be of a multi-byte character, can be in an unquoted name.
func isNameByte(c byte) bool {
	return c > ' ' && c != 0x7f && strings.IndexByte(`.,[]{}()$@'"=!<>&|?*;\`+"`", c) < 0
}

// typographicQuotes are the quotes that word processors substitute.
const typographicQuotes = "“”„‘’‚«»"

// describeLookalike describes the first character of text if it is a typographic quote or invisible.
func describeLookalike(text string) string {
	if text[0] < utf8.RuneSelf {
		return ""
	}
	switch r, _ := utf8.DecodeRuneInString(text); {
	case strings.ContainsRune(typographicQuotes, r):
		return "the typographic quote " + string(r)
	case r != utf8.RuneError && !unicode.IsPrint(r): // unusual blanks and zero-width characters
		return fmt.Sprintf("the invisible character %U", r)
	}
	return ""
}

func canStartName(c byte) bool { return isNameByte(c) || c == '\\' }

// unexpectedError returns the error for the character at pos, which ends a path but is not allowed there.
func (p *parser) unexpectedError() error {
	at, to := p.pos, p.charEnd()
	hint := ""
	switch c := p.peek(); {
	case p.atEnd():
		return p.fail(CodeUnclosed, at, at, "", "the expression ends too early")
	case c == '{':
		hint = "braces go around the whole path"
	case c == '}':
		hint = `there is no "{" before it`
	case c == ']':
		hint = `there is no "[" before it`
	case c == ',':
		hint = "give each path on its own, or write a union as ['a','b']"
	case c == '|':
		hint = "a path has no pipes"
	case c == '?':
		hint = "write a filter as [?(...)]"
	case c == '$' || c == '@':
		hint = `it stands only at the start; write "\` + string(c) + `" in a name`
	case c > ' ' && c < 0x7f && strings.IndexByte(`=!<>&;()'"`, c) >= 0:
		hint = `write "\` + string(c) + `" in a name, or quote the name as ["..."]`
	case isBlank(c):
		hint = `write "\ " in a name`
	case at > 0 && isBlank(p.src[at-1]):
		return p.fail(CodeUnexpected, at, len(p.src), "quote a name that contains a blank as [\"...\"]",
			"text after the path")
	}
	return p.fail(CodeUnexpected, at, to, hint, "unexpected %s", p.currentChar())
}
