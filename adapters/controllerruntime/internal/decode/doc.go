// Package decode decodes the JSON of objects into Go structs as sigs.k8s.io/json does (FuzzDecode), several
// times faster: structs are compiled once. What it does not support, it leaves to that package.
package decode
