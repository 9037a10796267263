// Package testkit has helpers for tests and benchmarks that do not depend on this library: a check for leaked
// goroutines, CPU time, terminals, large objects, a custom
// resource, requests to handlers, and proxies that simulate middleboxes.
package testkit
