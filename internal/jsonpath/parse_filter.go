package jsonpath

import "strings"

// parseFilterSelector parses "?" and its condition.
func (p *parser) parseFilterSelector() (Selector, error) {
	p.pos++
	from := p.pos
	if err := p.enterNesting(); err != nil {
		return Selector{}, err
	}
	defer p.leaveNesting()
	p.skipBlanks()
	if p.peek() == ']' {
		return Selector{}, p.fail(CodeOperand, p.pos, p.pos, "write [?(@.name)]", "the filter is empty")
	}
	c, err := p.parseOr()
	if err != nil {
		return Selector{}, err
	}
	p.skipBlanks()
	if k := p.peek(); !p.atEnd() && k != ']' && k != ',' {
		return Selector{}, p.unexpectedInFilterError()
	}
	filter := newFilter(strings.TrimSpace(p.src[from:p.pos]), c, nil)
	return Selector{Kind: SelectFilter, Filter: filter}, nil
}

// parseCondition parses a whole filter expression.
func (p *parser) parseCondition() (*condition, error) {
	if err := p.checkInput(); err != nil {
		return nil, err
	}
	switch from := p.pos; p.peek() {
	case '[', '?', '{':
		return nil, p.fail(CodeOperand, from, from+1,
			`write it without {} and [?()], as in @.spec.paused == true`, "a condition cannot start with %s",
			p.currentChar())
	}
	c, err := p.parseOr()
	if err != nil {
		return nil, err
	}
	p.skipBlanks()
	if !p.atEnd() {
		return nil, p.unexpectedInFilterError()
	}
	return c, nil
}

func (p *parser) parseOr() (*condition, error) { return p.parseChain(condOr, "||", p.parseAnd) }

func (p *parser) parseAnd() (*condition, error) { return p.parseChain(condAnd, "&&", p.parseUnary) }

func (p *parser) parseChain(kind condKind, operator string,
	next func() (*condition, error)) (*condition, error) {
	first, err := next()
	if err != nil {
		return nil, err
	}
	c := &condition{kind: kind, args: []*condition{first}}
	for p.skipBlanks(); p.hasPrefix(operator); p.skipBlanks() {
		p.pos += len(operator)
		arg, err := next()
		if err != nil {
			return nil, err
		}
		// (a && b) && c equals a && b && c, which is cheaper to evaluate and has the same text
		if arg.kind == kind {
			c.args = append(c.args, arg.args...)
		} else {
			c.args = append(c.args, arg)
		}
	}
	if len(c.args) == 1 {
		return first, nil
	}
	if first.kind == kind {
		c.args = append(first.args, c.args[1:]...)
	}
	return c, nil
}

func (p *parser) parseUnary() (*condition, error) {
	p.skipBlanks()
	switch p.peek() {
	case '!':
		return p.parseNot()
	case '(':
		return p.parseParens()
	}
	return p.parseComparison()
}

func (p *parser) parseNot() (*condition, error) {
	from := p.pos
	if err := p.enterNesting(); err != nil {
		return nil, err
	}
	p.pos++
	p.skipBlanks()
	if p.peek() == '(' {
		// Parentheses are a level themselves, so that the canonical form is not nested deeper.
		p.leaveNesting()
	} else {
		defer p.leaveNesting()
	}
	if p.peek() == '=' {
		return nil, p.fail(CodeOperand, from, from+2, "", `"!=" needs a value on its left`)
	}
	lacksParens := p.peek() != '(' && p.peek() != '!'
	arg, err := p.parseUnary()
	if err != nil {
		return nil, err
	}
	if lacksParens && arg.kind == condCompare {
		return nil, p.fail(CodeLogical, from, from+1, "write !(... "+compareOps[arg.op]+" ...)",
			`"!" before a comparison needs parentheses`)
	}
	return &condition{kind: condNot, args: []*condition{arg}}, nil
}

func (p *parser) parseParens() (*condition, error) {
	open := p.pos
	if err := p.enterNesting(); err != nil {
		return nil, err
	}
	defer p.leaveNesting()
	p.pos++
	p.skipBlanks()
	if p.peek() == ')' {
		return nil, p.fail(CodeOperand, p.pos, p.pos, "write (@.name)", "the parentheses are empty")
	}
	c, err := p.parseOr()
	if err != nil {
		return nil, err
	}
	p.skipBlanks()
	switch p.peek() {
	case ')':
		p.pos++
		return c, nil
	case 0, ']':
		return nil, p.fail(CodeUnclosed, open, open+1, `add ")"`, `"(" is never closed`)
	}
	return nil, p.unexpectedInFilterError()
}

func (p *parser) parseComparison() (*condition, error) {
	leftStart := p.pos
	left, err := p.parseOperand()
	if err != nil {
		return nil, err
	}
	leftEnd := p.pos
	p.skipBlanks()
	op, found, err := p.parseOperator()
	switch {
	case err != nil:
		return nil, err
	case !found && left.isPath:
		return &condition{kind: condExists, left: left}, nil
	case !found:
		return nil, p.fail(CodeOperand, leftStart, leftEnd, "compare it with a path",
			"a literal is not a condition")
	}
	if err := p.checkSingular(left, leftStart, leftEnd, op); err != nil {
		return nil, err
	}
	p.skipBlanks()
	rightStart := p.pos
	right, err := p.parseOperand()
	if err != nil {
		return nil, err
	}
	if err := p.checkSingular(right, rightStart, p.pos, op); err != nil {
		return nil, err
	}
	left.offset, left.end, right.offset, right.end = leftStart, leftEnd, rightStart, p.pos
	return &condition{kind: condCompare, op: op, left: left, right: right}, nil
}

// checkSingular rejects a comparison with a path that can have many results, because it is unclear whether
// any or all have to match. kubectl fails only when it meets such an object.
func (p *parser) checkSingular(o operand, from, to int, op compareOp) error {
	if !o.isPath || isSingular(o.steps) {
		return nil
	}
	text := p.src[from:to]
	hint := `ask whether one of them matches, as in [?(@.list[?(@ ` + compareOps[op] + ` "x")])]`
	return p.fail(CodeManyValues, from, to, hint, `%q compares single values, and %s can give many`,
		compareOps[op], text)
}

// wrongOperators maps common mistakes to the correct operator.
var wrongOperators = map[string]string{
	"=": "==", "===": "==", "=<": "<=", "=>": ">=", "<>": "!=", "!==": "!=", "<=>": "==",
}

func (p *parser) parseOperator() (op compareOp, found bool, err error) {
	from := p.pos
	to := from
	for to < len(p.src) && strings.IndexByte("=!<>~", p.src[to]) >= 0 {
		to++
	}
	text := p.src[from:to]
	if text == "" {
		return 0, false, nil
	}
	for i, candidate := range compareOps {
		if text == candidate {
			p.pos = to
			return compareOp(i), true, nil
		}
	}
	hint := "write one of == != < <= > >="
	if candidate, ok := wrongOperators[text]; ok {
		hint = `use "` + candidate + `"`
	} else if strings.Contains(text, "~") {
		hint = "there are no regular expressions in a path"
	}
	return 0, false, p.fail(CodeComparison, from, to, hint, `%q is not a comparison`, text)
}

// wrongWords maps words of other languages to operators.
var wrongWords = map[string]string{"and": "&&", "or": "||", "AND": "&&", "OR": "||", "eq": "==", "ne": "!=",
	"lt": "<", "gt": ">", "le": "<=", "ge": ">="}

// unexpectedInFilterError returns the error for text after a complete condition.
func (p *parser) unexpectedInFilterError() error {
	from := p.pos
	if word := p.peekWord(); word != "" {
		hint := "write && or || between two conditions"
		if op, ok := wrongWords[word]; ok {
			hint = `use "` + op + `"`
		}
		return p.fail(CodeLogical, from, from+len(word), hint, `%q is not an operator`, word)
	}
	switch c := p.peek(); {
	case c == '&' || c == '|':
		return p.fail(CodeLogical, from, from+1, `use "`+strings.Repeat(string(c), 2)+`"`,
			`%q is not a logical operator`, string(c))
	case strings.IndexByte("=!<>~", c) >= 0 && c != 0:
		return p.fail(CodeComparison, from, from+1, "join two comparisons with &&",
			"a comparison of a comparison")
	case c == '(':
		return p.fail(CodeFunction, from, from+1, "", "functions are not supported")
	case c == ')':
		return p.fail(CodeUnexpected, from, from+1, `there is no "(" before it`, "unexpected %s", p.currentChar())
	case p.depth == 0 && (c == ']' || c == '}'):
		return p.fail(CodeUnexpected, from, from+1, "a condition is written without [?()] and {}",
			"unexpected %s", p.currentChar())
	case c == '}' || p.atEnd():
		return p.fail(CodeUnclosed, from, from, `add "]"`, "the filter is never closed")
	}
	return p.fail(CodeLogical, from, p.charEnd(), "write && or || between two conditions",
		"unexpected %s in a filter", p.currentChar())
}
