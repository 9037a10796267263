package jsonpath

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Code identifies a kind of finding. Codes with E are errors, codes with W are warnings.
type Code string

// Errors; docs/jsonpath.md explains each with an example.
const (
	CodeUnexpected    Code = "E101" // an unexpected character
	CodeUnclosed      Code = "E102" // an unclosed bracket, brace or parenthesis
	CodeLiteralText   Code = "E103" // text outside the braces
	CodeComparison    Code = "E104" // not a comparison operator
	CodeManyTemplates Code = "E105" // more than one {}
	CodeRange         Code = "E106" // range or end
	CodeName          Code = "E107" // a missing or invalid name
	CodeBracket       Code = "E108" // [] without a valid selector
	CodeIndex         Code = "E109" // a malformed or out-of-range index or slice bound
	CodeString        Code = "E110" // a malformed quoted string
	CodeNumber        Code = "E111" // a malformed number
	CodeOperand       Code = "E112" // a missing operand, or a literal without comparison
	CodeManyValues    Code = "E113" // a comparison with a path of many values
	CodeLogical       Code = "E114" // not a logical operator
	CodeFunction      Code = "E115" // functions and script expressions
	CodeRootInFilter  Code = "E116" // $ inside a filter
	CodeLimit         Code = "E117" // an expression that is too long or too deeply nested
	CodeEmpty         Code = "E118" // an empty expression
	CodeInvalidUTF8   Code = "E119" // the expression is not valid UTF-8
	CodeWork          Code = "E120" // an expression that can take far more time than reading the object
)

// Warnings.
const (
	CodeOneKey      Code = "W101" // a quoted key with a dot, which kubectl splits
	CodeRecursive   Code = "W102" // .. visits everything below
	CodeNumericKey  Code = "W103" // .0 is a key, not an index
	CodeFilterTwice Code = "W104" // a filter directly after a filter looks inside each element
	CodeLookalike   Code = "W105" // a name with a confusable or invisible character
)

const (
	maxExprBytes     = 16 << 10
	maxNesting       = 64
	maxDocumentDepth = 10000 // as in sigs.k8s.io/json
)

// Diagnostic is a finding about an expression. An [Error] contains one; [Path.Warnings] and [Filter.Warnings]
// return a list.
type Diagnostic struct {
	// Code is the kind of finding. Its meaning never changes, so that tools can match it.
	Code Code
	// Message describes the problem in one clause.
	Message string
	// Hint is the remedy, or the alternative reading of an ambiguous expression. It may be empty.
	Hint string
	// Expr is the whole expression as given.
	Expr string
	// Offset is the byte offset of the problem in Expr.
	Offset int
	// Length is the number of affected bytes; 0 for a position, such as the end of Expr.
	Length int
}

// Text formats the finding without position, as "CODE: message; hint", for callers that know a better
// position, such as the line of a config file.
func (d Diagnostic) Text() string {
	if d.Hint == "" {
		return string(d.Code) + ": " + d.Message
	}
	return string(d.Code) + ": " + d.Message + "; " + d.Hint
}

// Caret returns the line of the expression and a mark below the position, without a final newline:
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
		if r == '\t' { // keep tabs, so that the mark stays below the position
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

// Error is the error of [Compile] and [CompileFilter]. Parsing stops at the first. Get it with errors.As.
type Error struct {
	Diagnostic
}

// Error formats the finding on one line as "line:column: CODE: message; hint". Both numbers begin with 1, and
// the column counts characters.
func (e *Error) Error() string {
	before := e.Expr[:min(max(e.Offset, 0), len(e.Expr))]
	start := strings.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("%d:%d: %s", strings.Count(before, "\n")+1, utf8.RuneCountInString(before[start:])+1,
		e.Text())
}
