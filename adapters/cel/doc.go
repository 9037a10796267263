// Package cel adds CEL expressions to index configs, queries and the command: the fields "cel" of indexes and
// of "when", and the function cel of queries. Import it for this effect:
//
//	import _ "github.com/crdcache/crdcache/adapters/cel"
//
// It is a module of its own, because it depends on cel-go and on Kubernetes' libraries for it.
//
// # Semantics
//
// An expression reads the object as self, as decoded JSON without a schema: like object in a
// ValidatingAdmissionPolicy, and unlike self in a CRD's validation rules, where schemas change types. The
// functions are the API server's. A check against a CRD only accepts an expression that has the same results
// with and without the schema.
//
// # Limits
//
// An evaluation ends with an error if it costs more than the API server permits for one call. It can neither
// panic nor write.
//
// # Concurrency
//
// Compiled expressions are safe for concurrent use.
package cel

import "github.com/crdcache/crdcache/internal/expression"

func init() { expression.SetCompiler(compile) }
