package jsonpath

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
