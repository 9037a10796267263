package indexers

// Code identifies a kind of finding. Codes that start with E refuse a config, codes that start with W
// do not. A code never changes its meaning. E1xx and W1xx come from the path language and are
// explained with it.
type Code string

// The errors of the config. docs/config.md explains each.
const (
	CodeUnknownField Code = "E001" // a field that does not exist
	CodeDuplicateKey Code = "E002" // the same field twice in one map
	CodeWrongType    Code = "E003" // a list where text is wanted, and so on
	CodeRequired     Code = "E004" // a field is missing
	CodeEmpty        Code = "E005" // an empty text or list
	CodeUnknownValue Code = "E006" // not one of the values that a field can have
	CodeTaken        Code = "E007" // a name that is used already
	CodeContradict   Code = "E008" // fields that do not go together
	CodeYAML         Code = "E009" // not YAML
	CodeNotOurs      Code = "E011" // another apiVersion or kind
	CodeOutOfRange   Code = "E012" // a number that is too small or too large
	CodeAlias        Code = "E013" // YAML aliases and merge keys
	CodeRegex        Code = "E014" // a regular expression that does not compile
	CodeName         Code = "E015" // a name with characters that names cannot have
	CodeManyKeys     Code = "E016" // several keys of one index that can have many values
	CodeFile         Code = "E017" // a file that cannot be read
	CodeValue        Code = "E018" // a value that is not of the type of the index
	CodeSelector     Code = "E019" // not a label or field selector

	CodeKeptForIndex Code = "W001" // an index over something that is pruned
)

// The findings of [Config.Check], which compares with CustomResourceDefinitions.
const (
	CodeNotInSchema  Code = "E301" // a field that the schema does not have
	CodeContainer    Code = "E302" // a list is read as a map, or a map as a list
	CodeScalar       Code = "E303" // something below a text, a number or a boolean
	CodeNoResource   Code = "E304" // a resource that no CRD defines
	CodeNoVersion    Code = "E305" // a version that the CRD does not serve
	CodeNotIndexable Code = "E306" // the path ends at a list or a map
	CodeTypeMismatch Code = "E307" // a type that no value of the path has

	CodeOpenField    Code = "W301" // a field that the schema leaves open
	CodeNoSchema     Code = "W302" // a version without a schema
	CodeBuiltIn      Code = "W303" // a type that is built into Kubernetes
	CodeOptionalGone Code = "W304" // an optional resource that no CRD defines
	CodeTextOrder    Code = "W305" // numbers that are ordered as text
	CodeTypePartly   Code = "W306" // a type that only some values of the path have
	CodeLiteral      Code = "W307" // a comparison that holds for all values of the path, or for none
)
