// Package jsonpath compiles paths into Kubernetes objects, and evaluates them on objects and raw JSON.
//
// The language is that of kubectl without its surprises: .spec.issuerRef.name, {.spec.dnsNames[*]},
// .metadata.labels['example.io/team'], .status.conditions[?(@.type=="Ready" && @.status=="True")].
// docs/jsonpath.md describes it, including the differences from kubectl and RFC 9535.
//
// # Usage
//
// [Compile] compiles an expression to a [Path], [CompileFilter] compiles a condition to a [Filter], and
// [FromSegments] builds a path from keys that need no escaping. Compile once and keep the result.
//
// [Path.Find], [Path.Append] and [Path.First] evaluate decoded unstructured objects; [Path.FindJSON] and
// [Path.FirstJSON] evaluate a JSON document without decoding it. A [Set] evaluates many paths and filters in
// one pass over a document:
//
//	set := jsonpath.NewSet(namespace, issuer, ready)
//	err := set.FindJSON(raw, func(i int, v jsonpath.Value) bool {
//		keys[i] = v.String()
//		return true
//	})
//
// The error of an invalid expression is an [*Error] with a code, a position and a remedy; its Caret method
// marks the position. Warnings are findings about valid expressions that may have another meaning than the
// author intended.
//
// # Consistency
//
// Evaluation never fails on an object: a missing key, a null on the way, an index out of range or a value of
// another kind gives no result. Results are always in the same order; values of maps are in the order of
// their keys.
//
// Evaluating a document gives the same results as evaluating the object that sigs.k8s.io/json decodes from
// it: the same numbers, the last of duplicate keys, the same replacements of invalid UTF-8. Both accept the
// same documents. A document is checked completely before the first result, because a later duplicate key
// replaces an earlier value. Invalid JSON therefore gives a [*jsontext.SyntaxError] and no results.
//
// Evaluation takes time proportional to the size of the document and the length of the expression.
// Expressions that can take more, such as one with two "..", do not compile. The size and nesting of
// expressions and documents are limited. Methods with a context return early when it ends.
//
// # Concurrency
//
// Paths, filters and sets are immutable and safe for concurrent use. Callbacks run on the caller's goroutine
// without locks and can use the package. Objects and documents must not change during a call.
//
// # Memory
//
// Evaluation allocates nothing except pooled scratch space, comparisons of two lists or maps, and strings
// with escapes. A [Value] references its document and pins it in memory: copy values that are stored.
package jsonpath
