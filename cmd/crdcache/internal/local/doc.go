// Package local is the server that keeps types for the commands of one user: where it listens, for which
// cluster and as whom, and how commands ask it.
package local
