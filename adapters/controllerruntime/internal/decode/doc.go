// Package decode decodes the JSON of Kubernetes objects into Go structs. Results and errors are the same as
// with sigs.k8s.io/json, but it is several times faster.
//
// A Decoder is compiled once per struct type. It has fast paths for structs, strings, signed integers,
// booleans, pointers, slices, maps with string keys, and the types of apimachinery with UnmarshalJSON.
// sigs.k8s.io/json decodes values of other types, and whole objects with an unusual part, such as a value
// of the wrong type, a duplicate key, or an escape in a key.
package decode
