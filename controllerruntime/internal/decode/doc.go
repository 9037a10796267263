// Package decode decodes the JSON of Kubernetes objects into Go structs as sigs.k8s.io/json does, several times faster.
package decode
