// Package jsontext parses JSON. It offers functions for parts of a document, for callers that process JSON
// without decoding it, and a Decoder that decodes objects into the maps of unstructured objects.
//
// # Usage
//
// Functions take the data and the offset of a value, and return the offset after it. For invalid data they
// return the complement (^) of the offset of the error. If the data is truncated, that offset is at least the
// length of the data.
//
//	if end = jsontext.ScanString(data, start); end < 0 {
//		return errorAt(^end)
//	}
//
// EnterContainer, NextMember and ScanKey iterate over objects and arrays in this way; Members iterates over
// an object. AppendIndented formats JSON as encoding/json does, without decoding it.
//
// The accepted language is that of sigs.k8s.io/json, including numbers and escapes. Strings may contain
// invalid UTF-8, which AppendUnescaped replaces.
//
// # Decoding
//
// The result is the same as of sigs.k8s.io/json's case-sensitive decoding that preserves integers, which
// apimachinery uses for unstructured objects: a number is an int64 if it has no decimal point and fits,
// otherwise a float64. The last of duplicate keys wins. Invalid UTF-8 and lone surrogates become U+FFFD.
// Nesting is limited to 10,000. Input that sigs.k8s.io/json rejects is rejected, with other error texts. Fuzz
// tests compare the two.
//
// # Memory
//
// Results do not refer to the input, so that its buffer can be reused. Each string is a separate allocation.
// One allocation for all strings of an object would be faster, but any retained string would retain the keys,
// the punctuation and all removed fields. A Certificate of 2 KB needs 8.8 KB of heap with separate strings
// and 10.7 KB with one allocation; without managed fields 3.5 KB and 5.5 KB. sigs.k8s.io/json needs 10.9 KB.
//
// Keys and short strings that recur are shared through a table of bounded size, together with their interface
// values. Objects and arrays with recurring text, such as managed fields, limits and probes, are copied from
// another bounded table instead of being parsed. Each result still has maps and slices of its own and can be
// changed; only the two results of DecodePair share them. Slices are allocated with their final size, maps
// with the size of the last similar one, and reallocated if that was much too large.
//
// # Concurrency
//
// Functions have no state. A Decoder is safe for concurrent use, and callers own its results.
package jsontext
