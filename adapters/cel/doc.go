// Package cel adds CEL expressions to index configs, queries and the command: the fields "cel" of indexes and
// of "when", and the function cel of queries. Import it for this effect:
//
//	import _ "github.com/crdcache/crdcache/adapters/cel"
//
// It is a module of its own, because it depends on cel-go and on Kubernetes' libraries for it.
//
// # Semantics
//
// An expression reads the object as self, with the API server's functions. A query has the schema, as a CRD's
// validation rule. An index decodes JSON, and a check only accepts one that needs no schema.
//
// An evaluation ends with an error if it costs more than the API server permits for one call. It can neither
// panic nor write. Compiled expressions are safe for concurrent use.
package cel

import "github.com/crdcache/crdcache/internal/expression"

func init() { expression.SetCompiler(compile) }
