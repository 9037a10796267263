// Package testkit has helpers for tests and benchmarks that do not depend on this library: a check for leaked
// goroutines, CPU time, terminals, large objects, and proxies that simulate middleboxes.
package testkit
