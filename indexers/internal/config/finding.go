package config

// Finding is what is wrong or doubtful about a config, where, and the way out. Lines, columns and lengths
// count from 1, in characters.
type Finding struct {
	File                 string
	Line, Column, Length int
	Code                 Code
	Message, Hint        string
	// Source is the line of the file, without its end.
	Source string

	order int // of the file
}

// IsWarning reports whether the finding does not refuse a config.
func (f Finding) IsWarning() bool { return f.Code != "" && f.Code[0] == 'W' }

// Place is where the finding is.
func (f Finding) Place() Place { return Place{f.Line, f.Column, f.Length} }

// Code identifies a kind of finding, as indexers.Code does.
type Code = string

// The errors of the config. docs/config.md explains each.
const (
	CodeUnknownField = "E001" // a field that does not exist
	CodeDuplicateKey = "E002" // the same field twice in one map
	CodeWrongType    = "E003" // a list where text is wanted, and so on
	CodeRequired     = "E004" // a field is missing
	CodeEmpty        = "E005" // an empty text or list
	CodeUnknownValue = "E006" // not one of the values that a field can have
	CodeTaken        = "E007" // a name that is used already
	CodeContradict   = "E008" // fields that do not go together
	CodeYAML         = "E009" // not YAML
	CodeNotOurs      = "E011" // another apiVersion or kind
	CodeOutOfRange   = "E012" // a number that is too small or too large
	CodeAlias        = "E013" // YAML aliases and merge keys
	CodeRegex        = "E014" // a regular expression that does not compile
	CodeName         = "E015" // a name with characters that names cannot have
	CodeManyKeys     = "E016" // several keys of one index that can have many values
	CodeFile         = "E017" // a file that cannot be read
	CodeValue        = "E018" // a value that is not of the type of the index
	CodeSelector     = "E019" // not a label or field selector
	CodeImpossible   = "E020" // a name or a path that no object has

	CodeKeptForIndex = "W001" // an index over something that is pruned
)

// The findings of [Config.Check], which compares with CustomResourceDefinitions.
const (
	CodeNotInSchema  = "E301" // a field that the schema does not have
	CodeContainer    = "E302" // a list is read as a map, or a map as a list
	CodeScalar       = "E303" // something below a text, a number or a boolean
	CodeNoResource   = "E304" // a resource that no CRD defines
	CodeNoVersion    = "E305" // a version that the CRD does not serve
	CodeNotIndexable = "E306" // the path ends at a list or a map
	CodeTypeMismatch = "E307" // a type that no value of the path has
	CodeUnselectable = "E308" // a field selector over a field that the server does not select by
	CodeNoNamespace  = "E309" // a reference without a namespace to a type that has namespaces

	CodeOpenField    = "W301" // a field that the schema leaves open
	CodeNoSchema     = "W302" // a version without a schema
	CodeBuiltIn      = "W303" // a type that is built into Kubernetes
	CodeOptionalGone = "W304" // an optional resource that no CRD defines
	CodeTextOrder    = "W305" // numbers that are ordered as text
	CodeTypePartly   = "W306" // a type that only some values of the path have
	CodeLiteral      = "W307" // a comparison that holds for all values of the path, or for none
	CodeExistence    = "W308" // a condition that asks whether a boolean is there, not whether it is true
	CodeTextQuantity = "W309" // quantities that are compared as text
	CodeLackedBySome = "W310" // what some of the types lack that a pattern matches
	CodeNoTarget     = "W311" // a reference to a type that no CRD defines
)
