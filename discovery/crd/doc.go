// Package crd reads CustomResourceDefinitions: names, scope, versions and conditions, and for each version
// the structural OpenAPI schema, the printer columns and the selectable fields.
//
// # Usage
//
// Definitions come from a cluster (Fetch, FromUnstructured), from one JSON document (Decode), or from YAML
// and JSON files (ReadFile, Read):
//
//	definitions, err := crd.ReadFile("crds.yaml")
//	v, ok := definitions[0].Version("v1")
//	names := v.Schema.Properties["spec"].Properties["dnsNames"]
//
// The package supports apiextensions.k8s.io/v1, which every server since Kubernetes 1.16 serves. Unknown
// fields are ignored; fields of the wrong form are errors.
//
// # Concurrency
//
// A Definition is plain data. It is safe for concurrent reads.
package crd
