// Package testkit has helpers for tests and benchmarks that do not depend on this library: a check for leaked
// goroutines, CPU time, terminals, config files, a custom resource, requests to handlers, a compressing
// proxy, and a client of the sandbox.
package testkit
