package indexers

import "github.com/crdcache/crdcache/indexers/internal/config"

// Code identifies a kind of finding. Codes that start with E refuse a config, codes that start with W
// do not. A code never changes its meaning. E1xx and W1xx come from the path language and are
// explained with it.
type Code string

// The errors of the config. docs/config.md explains each.
const (
	CodeUnknownField Code = config.CodeUnknownField // a field that does not exist
	CodeDuplicateKey Code = config.CodeDuplicateKey // the same field twice in one map
	CodeWrongType    Code = config.CodeWrongType    // a list where text is wanted, and so on
	CodeRequired     Code = config.CodeRequired     // a field is missing
	CodeEmpty        Code = config.CodeEmpty        // an empty text or list
	CodeUnknownValue Code = config.CodeUnknownValue // not one of the values that a field can have
	CodeTaken        Code = config.CodeTaken        // a name that is used already
	CodeContradict   Code = config.CodeContradict   // fields that do not go together
	CodeYAML         Code = config.CodeYAML         // not YAML
	CodeNotOurs      Code = config.CodeNotOurs      // another apiVersion or kind
	CodeOutOfRange   Code = config.CodeOutOfRange   // a number that is too small or too large
	CodeAlias        Code = config.CodeAlias        // YAML aliases and merge keys
	CodeRegex        Code = config.CodeRegex        // a regular expression that does not compile
	CodeName         Code = config.CodeName         // a name with characters that names cannot have
	CodeManyKeys     Code = config.CodeManyKeys     // several keys of one index that can have many values
	CodeFile         Code = config.CodeFile         // a file that cannot be read
	CodeValue        Code = config.CodeValue        // a value that is not of the type of the index
	CodeSelector     Code = config.CodeSelector     // not a label or field selector
	CodeImpossible   Code = config.CodeImpossible   // a name or a path that no object has

	CodeKeptForIndex Code = config.CodeKeptForIndex // an index over something that is pruned
)

// The findings of [Config.Check], which compares with CustomResourceDefinitions.
const (
	CodeNotInSchema  Code = config.CodeNotInSchema  // a field that the schema does not have
	CodeContainer    Code = config.CodeContainer    // a list is read as a map, or a map as a list
	CodeScalar       Code = config.CodeScalar       // something below a text, a number or a boolean
	CodeNoResource   Code = config.CodeNoResource   // a resource that no CRD defines
	CodeNoVersion    Code = config.CodeNoVersion    // a version that the CRD does not serve
	CodeNotIndexable Code = config.CodeNotIndexable // the path ends at a list or a map
	CodeTypeMismatch Code = config.CodeTypeMismatch // a type that no value of the path has
	// a field selector over a field that the server does not select by
	CodeUnselectable Code = config.CodeUnselectable
	// a reference without a namespace to a type that has namespaces
	CodeNoNamespace Code = config.CodeNoNamespace

	CodeOpenField    Code = config.CodeOpenField    // a field that the schema leaves open
	CodeNoSchema     Code = config.CodeNoSchema     // a version without a schema
	CodeBuiltIn      Code = config.CodeBuiltIn      // a type that is built into Kubernetes
	CodeOptionalGone Code = config.CodeOptionalGone // an optional resource that no CRD defines
	CodeTextOrder    Code = config.CodeTextOrder    // numbers that are ordered as text
	CodeTypePartly   Code = config.CodeTypePartly   // a type that only some values of the path have
	// a comparison that holds for all values of the path, or for none
	CodeLiteral Code = config.CodeLiteral
	// a condition that asks whether a boolean is there, not whether it is true
	CodeExistence    Code = config.CodeExistence
	CodeTextQuantity Code = config.CodeTextQuantity // quantities that are compared as text
	CodeLackedBySome Code = config.CodeLackedBySome // what some of the types lack that a pattern matches
	CodeNoTarget     Code = config.CodeNoTarget     // a reference to a type that no CRD defines
)
