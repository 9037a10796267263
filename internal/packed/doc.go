// Package packed keeps Kubernetes objects as the JSON that they came as, in little memory.
//
// # Purpose
//
// An unstructured object of 2 KB of JSON occupies 9 to 12 KB as maps, and takes 20 times as long to build as
// to check. Most objects of a cache are never read. A packed Object is one piece of memory with the JSON and
// the key, and 64 bytes beside it that say where name, UID, resource version and labels are. It is decoded
// when somebody reads it; a weak pointer keeps the result for as long as the garbage collector lets it live.
//
// # Semantics
//
// Packer.Pack accepts what apimachinery's unstructured JSON decoding accepts, refuses what it refuses, and
// Object.Unstructured returns what it returns, less what Prune says. One pass over the bytes checks the
// syntax and finds the identity and the parts to leave out. What is unusual (a key twice at the top level,
// nesting beyond 5,000, escapes where names are) takes a slower way to the same result. Fuzz tests hold the
// results against apimachinery's.
//
// # Concurrency
//
// Objects never change and may be used from any number of goroutines, and so may Packers. What Unstructured
// returns is shared and must not be changed; changing it does not change what is packed. The two objects that
// Pair returns share what is the same in both, so that changing one may change the other.
package packed
