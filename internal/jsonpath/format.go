package jsonpath

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// formatSteps writes the canonical form of a path, which compiles to it without warnings W101 and W105.
func formatSteps(b *strings.Builder, root string, steps []Step) {
	if len(steps) == 0 || root == "@" || !steps[0].Recursive && !needsNoBrackets(steps[0]) {
		b.WriteString(root)
	}
	for _, s := range steps {
		formatStep(b, s)
	}
}

// needsNoBrackets reports whether the selector of a step is written without brackets.
func needsNoBrackets(s Step) bool {
	sel := s.Selectors[0]
	return len(s.Selectors) == 1 && (sel.Kind == SelectMembers || sel.Kind == SelectName &&
		needsNoQuotes(sel.Name))
}

// needsNoQuotes reports whether a name is written without quotes.
func needsNoQuotes(name string) bool {
	for i := 0; i < len(name); i++ {
		if name[i] != '.' && (!isNameByte(name[i]) || describeLookalike(name[i:]) != "") {
			return false
		}
	}
	return name != ""
}

func formatStep(b *strings.Builder, s Step) {
	sel := s.Selectors[0]
	if needsNoBrackets(s) {
		b.WriteByte('.')
		if s.Recursive {
			b.WriteByte('.')
		}
		if sel.Kind == SelectMembers {
			b.WriteByte('*')
		} else {
			formatName(b, sel.Name)
		}
		return
	}
	if s.Recursive {
		b.WriteString("..")
	}
	b.WriteByte('[')
	for i, sel := range s.Selectors {
		if i > 0 {
			b.WriteByte(',')
		}
		formatSelector(b, sel)
	}
	b.WriteByte(']')
}

func formatName(b *strings.Builder, name string) {
	for i := 0; i < len(name); i++ {
		if !isNameByte(name[i]) {
			b.WriteByte('\\')
		}
		b.WriteByte(name[i])
	}
}

func formatSelector(b *strings.Builder, s Selector) {
	switch s.Kind {
	case SelectName:
		formatString(b, s.Name)
	case SelectIndex:
		b.WriteString(strconv.Itoa(s.Index))
	case SelectSlice:
		formatSlice(b, s.Slice)
	case SelectElements:
		b.WriteByte('*')
	case SelectFilter:
		b.WriteString("?(")
		formatCondition(b, s.Filter.cond, condOr)
		b.WriteByte(')')
	}
}

func formatSlice(b *strings.Builder, s Slice) {
	if s.HasStart {
		b.WriteString(strconv.Itoa(s.Start))
	}
	b.WriteByte(':')
	if s.HasEnd {
		b.WriteString(strconv.Itoa(s.End))
	}
	if s.Step != 1 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(s.Step))
	}
}

// formatCondition writes c as an operand of a condition of outerKind.
func formatCondition(b *strings.Builder, c *condition, outerKind condKind) {
	switch c.kind {
	case condOr, condAnd:
		operator := " || "
		if c.kind == condAnd {
			operator = " && "
		}
		needsParens := c.kind == condOr && outerKind == condAnd
		if needsParens {
			b.WriteByte('(')
		}
		for i, a := range c.args {
			if i > 0 {
				b.WriteString(operator)
			}
			formatCondition(b, a, c.kind)
		}
		if needsParens {
			b.WriteByte(')')
		}
	case condNot:
		b.WriteString("!(")
		formatCondition(b, c.args[0], condOr)
		b.WriteByte(')')
	case condExists:
		formatOperand(b, c.left)
	case condCompare:
		formatOperand(b, c.left)
		b.WriteString(" " + compareOps[c.op] + " ")
		formatOperand(b, c.right)
	}
}

func formatOperand(b *strings.Builder, o operand) {
	if o.isPath {
		formatSteps(b, "@", o.steps)
		return
	}
	switch l := o.literal; l.kind {
	case KindString:
		formatString(b, l.text)
	case KindNumber:
		formatNumber(b, l)
	case KindBool:
		b.WriteString(strconv.FormatBool(l.boolean))
	default:
		b.WriteString("null")
	}
}

func formatNumber(b *strings.Builder, l scalar) {
	if l.isInt {
		b.WriteString(strconv.FormatInt(l.integer, 10))
		return
	}
	text := strconv.FormatFloat(l.float, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") && !math.IsInf(l.float, 0) {
		text += ".0" // so that it is parsed as a float again
	}
	b.WriteString(text)
}

// formatString writes a string in double quotes with JSON escapes.
func formatString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}
