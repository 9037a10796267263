// Package apitest runs a testcluster behind a port for unit tests, which use real clients over HTTP. It
// serves only the given types, simulates faults, and records all requests.
package apitest
