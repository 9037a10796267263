// Package jsonpath compiles paths into Kubernetes objects and evaluates them, over decoded objects
// and over raw JSON alike.
//
// The language is what kubectl users write, without its surprises: .spec.issuerRef.name,
// {.spec.dnsNames[*]}, .metadata.labels['example.io/team'],
// .status.conditions[?(@.type=="Ready" && @.status=="True")]. docs/jsonpath.md describes it, and
// where it differs from kubectl and from RFC 9535.
//
// # Usage
//
// [Compile] turns an expression into a [Path], [CompileFilter] a condition into a [Filter], and
// [FromSegments] builds a path from keys that need no escaping. Do this once and keep the result.
//
// [Path.Find], [Path.Append] and [Path.First] evaluate over what decoding JSON gives for
// unstructured objects; [Path.FindJSON], [Path.AppendJSON] and [Path.FirstJSON] over the bytes of a
// document, without decoding it. A [Set] evaluates many paths and filters over one document in one
// pass:
//
//	set := jsonpath.NewSet(namespace, issuer, ready)
//	err := set.FindJSON(raw, func(i int, v jsonpath.Value) bool {
//		keys[i] = v.AppendText(keys[i])
//		return true
//	})
//
// An expression that does not compile gives an [*Error] with a code, a place and a way out; its
// Caret method draws the place. What compiles but may not be what was meant is in Warnings.
//
// # Consistency
//
// Evaluation is total: a missing key, a null on the way, an index out of range or a value of another
// kind gives no value, never an error. The results of a path always come in the same order, with the
// values of maps in the order of their keys.
//
// Both evaluators give the same results on a document as on the object that sigs.k8s.io/json decodes
// from it: the same numbers, the last of duplicate keys, the same replacements for broken UTF-8. They
// accept the same documents too. A document is checked to its end before the first result, because
// a later duplicate could replace what was already found; so broken JSON gives a [*SyntaxError] and
// no results.
//
// An evaluation takes time in proportion to the size of the document and the length of the expression.
// An expression that could take more, such as one with two ".." in a row, does not compile. Expressions
// and documents have limits on their size and nesting. Methods with a context end early when it ends.
//
// # Concurrency
//
// Paths, filters and sets never change and may be used from any number of goroutines. Callbacks run
// on the caller's goroutine, under no lock, and may use the package themselves. Objects and
// documents are only read, and must not change during a call.
//
// # Memory
//
// Evaluation allocates nothing, apart from scratch space that is pooled, comparisons of two lists or
// maps, and strings with escapes. A [Value] refers to the document it was found in and keeps all of
// it alive: copy what is kept.
package jsonpath
