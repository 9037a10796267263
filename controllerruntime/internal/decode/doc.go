// Package decode decodes the JSON of Kubernetes objects into Go structs, with the results of sigs.k8s.io/json
// and several times faster.
//
// For each type of struct a Decoder is compiled once. It has a fast way for what is usual: structs, strings,
// numbers, booleans, pointers, slices, maps with strings for keys, and the types of apimachinery that read
// JSON by themselves. Types that it does not know are left to sigs.k8s.io/json for that value, and objects
// with anything unusual (a value of another type, a key twice, an escape in a key) as a whole, so that
// results and errors are always those.
package decode
