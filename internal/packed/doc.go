// Package packed stores Kubernetes objects as compact JSON.
//
// # Purpose
//
// An unstructured object of 2 KB of JSON occupies 9 to 12 KB as maps, and decoding it takes 20 times as long
// as checking its syntax. Most objects of a cache are never read. An Object is one allocation with the JSON
// and the key, plus 64 bytes with the offsets of name, UID, resource version and labels. It is decoded when
// it is read. A weak pointer keeps the decoded copy until the garbage collector frees it.
//
// # Forms
//
// The body of an Object is its JSON, its JSON compressed by a Codec, or a range of the bodies of a Block. The
// key, the identity fields and the labels are readable without decompression in every form. Getters of other
// metadata parse one field of the JSON; a MetadataReader decompresses it at most once.
//
// # Semantics
//
// Packer.Pack accepts and rejects the same input as apimachinery's decoder for unstructured objects, and
// Object.Unstructured returns the same result, without the fields that a Prune removes. One pass over the
// bytes checks the syntax and finds the identity fields and the fields to remove. Rare input (a duplicate key
// at the top level, nesting beyond 5,000, escapes in names) takes a slower path with the same result. Fuzz
// tests compare the results with apimachinery's.
//
// # Concurrency
//
// Objects are immutable and safe for concurrent use, and so are Packers. The result of Unstructured is shared
// and must not be changed; changing it does not change the packed object. The two results of PeekPair share
// maps, lists and strings, so changing one may change the other.
package packed
