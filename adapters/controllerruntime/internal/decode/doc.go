// Package decode decodes the JSON of objects into Go structs as sigs.k8s.io/json does (FuzzDecode), several
// times faster: structs are compiled once. It leaves all other types to that package.
package decode
