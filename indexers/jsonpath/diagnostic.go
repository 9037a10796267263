package jsonpath

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Code identifies a kind of finding. Codes that start with E stop a compilation, codes that start
// with W do not.
type Code string

// The errors. docs/jsonpath.md explains each with an example.
const (
	CodeUnexpected    Code = "E101" // a character that cannot stand here
	CodeUnclosed      Code = "E102" // the expression ends inside a bracket, brace or parenthesis
	CodeLiteralText   Code = "E103" // text outside the braces
	CodeComparison    Code = "E104" // not a comparison operator
	CodeManyTemplates Code = "E105" // more than one {}
	CodeRange         Code = "E106" // range or end
	CodeName          Code = "E107" // a name is missing, or is none
	CodeBracket       Code = "E108" // [] without a valid selector
	CodeIndex         Code = "E109" // an index or a slice bound is malformed or out of range
	CodeString        Code = "E110" // a malformed quoted string
	CodeNumber        Code = "E111" // a malformed number
	CodeOperand       Code = "E112" // a condition lacks an operand, or is a lone literal
	CodeManyValues    Code = "E113" // a comparison with a path that can give many values
	CodeLogical       Code = "E114" // not a logical operator
	CodeFunction      Code = "E115" // functions and script expressions
	CodeRootInFilter  Code = "E116" // $ inside a filter
	CodeLimit         Code = "E117" // the expression is too long or nested too deeply
	CodeEmpty         Code = "E118" // nothing to compile
	CodeInvalidUTF8   Code = "E119" // the expression is not valid UTF-8
	CodeWork          Code = "E120" // evaluating can take far more time than reading the object
)

// The warnings.
const (
	CodeOneKey      Code = "W101" // a quoted key with a dot, which kubectl reads as several keys
	CodeRecursive   Code = "W102" // .. visits everything below
	CodeNumericKey  Code = "W103" // .0 is a key, not an index
	CodeFilterTwice Code = "W104" // a filter directly after a filter looks inside each element
	CodeLookalike   Code = "W105" // a name with a character that is easily taken for another, or not seen
)

const (
	limitExprBytes     = 16 << 10
	limitNesting       = 64
	limitDocumentDepth = 10000 // as in sigs.k8s.io/json
)

// Diagnostic is one finding about an expression: what is wrong or doubtful, where, and what to do
// about it. An [Error] carries one; [Path.Warnings] and [Filter.Warnings] return a list.
type Diagnostic struct {
	// Code says which rule was broken. It never changes its meaning, so tools may match on it.
	Code Code
	// Message says what is wrong, in one clause.
	Message string
	// Hint is the way out, or the other reading of a doubtful expression. It may be empty.
	Hint string
	// Expr is the whole expression as it was given.
	Expr string
	// Offset is the byte offset in Expr at which the problem starts, from 0 to len(Expr).
	Offset int
	// Length is the number of bytes concerned; 0 means a single place, such as the end of Expr.
	Length int
}

// Position gives the line and the column of the finding within Expr, both from 1. The column counts
// characters, not bytes. Expressions of several lines are unusual but legal (YAML block scalars).
func (d Diagnostic) Position() (line, column int) {
	offset := min(max(d.Offset, 0), len(d.Expr))
	before := d.Expr[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// String formats the finding on one line as "line:column: CODE: message; hint".
func (d Diagnostic) String() string {
	line, column := d.Position()
	return fmt.Sprintf("%d:%d: %s", line, column, d.Text())
}

// Text formats the finding without its position, as "CODE: message; hint", for callers that know a
// better position, such as the line of a configuration file.
func (d Diagnostic) Text() string {
	if d.Hint == "" {
		return string(d.Code) + ": " + d.Message
	}
	return string(d.Code) + ": " + d.Message + "; " + d.Hint
}

// Caret draws the line of the expression with a mark below the place, without a final newline:
//
//	.status.conditions[?(@.type="Ready")]
//	                           ^
func (d Diagnostic) Caret() string {
	offset := min(max(d.Offset, 0), len(d.Expr))
	start := strings.LastIndexByte(d.Expr[:offset], '\n') + 1
	line := d.Expr[start:]
	if end := strings.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	line = strings.TrimSuffix(line, "\r")
	offset = min(offset-start, len(line))

	var b strings.Builder
	b.WriteString(line)
	b.WriteByte('\n')
	for _, r := range line[:offset] {
		if r == '\t' { // a tab above must stay a tab below, or the mark moves
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
	}
	b.WriteByte('^')
	end := min(offset+max(d.Length, 0), len(line))
	if marked := utf8.RuneCountInString(line[offset:end]); marked > 1 {
		b.WriteString(strings.Repeat("~", marked-1))
	}
	return b.String()
}

// Error is what [Compile] and [CompileFilter] return for an expression they cannot accept. Parsing
// stops at the first problem, so there is one finding. Use errors.As to get at it.
type Error struct {
	Diagnostic
}

// Error formats the finding on one line as "line:column: CODE: message; hint".
func (e *Error) Error() string { return e.Diagnostic.String() }
