package config

// Finding is an error or a warning about a config with its position and a remedy. Lines, columns and lengths
// count from 1, in characters.
type Finding struct {
	File                 string
	Line, Column, Length int
	Code                 Code
	Message, Hint        string
	// Source is the line of the file without its end.
	Source string

	fileNumber int // number of the file in the config
}

// IsWarning reports whether the finding is a warning, not an error.
func (f Finding) IsWarning() bool { return f.Code != "" && f.Code[0] == 'W' }

// Position returns the position of the finding.
func (f Finding) Position() Position { return Position{f.Line, f.Column, f.Length} }

// Code identifies a kind of finding; see indexers.Code.
type Code = string

// Errors; see docs/config.md.
const (
	CodeUnknownField  = "E001" // a field that does not exist
	CodeDuplicateKey  = "E002" // the same field twice in one map
	CodeWrongType     = "E003" // wrong YAML type, such as a list instead of text
	CodeRequired      = "E004" // a missing field
	CodeEmpty         = "E005" // an empty text or list
	CodeUnknownValue  = "E006" // not an allowed value of the field
	CodeDuplicateName = "E007" // a name that is already used
	CodeContradict    = "E008" // fields that exclude each other
	CodeYAML          = "E009" // not YAML
	CodeOtherKind     = "E011" // another apiVersion or kind
	CodeOutOfRange    = "E012" // a number out of range
	CodeAlias         = "E013" // YAML aliases and merge keys
	CodeRegex         = "E014" // a regular expression that does not compile
	CodeName          = "E015" // a name with invalid characters
	CodeManyKeys      = "E016" // several multi-valued keys in one index
	CodeFile          = "E017" // a file that cannot be read
	CodeValue         = "E018" // a value that does not have the type of the index
	CodeSelector      = "E019" // not a label or field selector
	CodeImpossible    = "E020" // a name or a path that no object can have

	CodePrunedFieldIndexed = "W001" // an index over a pruned field, which is therefore stored
	CodeOldVersion         = "W002" // a deprecated apiVersion
)

// Findings of the comparison with CustomResourceDefinitions.
const (
	CodeNotInSchema  = "E301" // a field that the schema does not have
	CodeContainer    = "E302" // a list read as a map, or a map as a list
	CodeScalar       = "E303" // a field below a text, a number or a boolean
	CodeNoResource   = "E304" // a resource that no CRD defines
	CodeNoVersion    = "E305" // a version that the CRD does not serve
	CodeNotIndexable = "E306" // the path ends at a list or a map
	CodeTypeMismatch = "E307" // a type that no value at the path has
	CodeUnselectable = "E308" // a field selector over a field that the server cannot select by
	CodeNoNamespace  = "E309" // a reference without namespace to a namespaced type

	CodeOpenField          = "W301" // a field that the schema leaves open
	CodeNoSchema           = "W302" // a version without a schema
	CodeBuiltIn            = "W303" // a type built into Kubernetes
	CodeOptionalMissing    = "W304" // an optional resource that no CRD defines
	CodeTextOrder          = "W305" // numbers ordered as text
	CodeTypePartly         = "W306" // a type that only some values at the path have
	CodeLiteral            = "W307" // a comparison that is true for all values at the path, or for none
	CodeExistence          = "W308" // a condition that tests whether a boolean exists instead of its value
	CodeTextQuantity       = "W309" // quantities compared as text
	CodeFieldNotInAllTypes = "W310" // a field that some of the types matched by a pattern lack
	CodeNoTarget           = "W311" // a reference to a type that no CRD defines
)
