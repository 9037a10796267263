// Package convert converts the stored objects of a cache to the forms that readers and handlers use: structs,
// unstructured objects and metadata. It recognizes handlers that need no decoded objects.
package convert
