// Package crd reads CustomResourceDefinitions: names, scope, versions and conditions, and for each
// version the structural OpenAPI schema, the printer columns and the selectable fields.
//
// # Usage
//
// Definitions come from a cluster (Fetch, FromUnstructured), from one JSON document (Decode), or from
// YAML and JSON files (ReadFile, Read):
//
//	definitions, err := crd.ReadFile("crds.yaml")
//	v, ok := definitions[0].Version("v1")
//	field, ok := v.Schema.Lookup("spec", "dnsNames", "[]")
//
// Only apiextensions.k8s.io/v1 is understood, which every server since Kubernetes 1.16 serves. What the
// package does not know is ignored; what has the wrong form is an error, never a panic.
//
// # Concurrency
//
// A Definition is plain data. It is safe for concurrent use as long as nobody changes it.
package crd
