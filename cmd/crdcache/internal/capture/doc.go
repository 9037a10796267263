// Package capture lists types from an API server in pages, each at one resource version, and saves them in
// snapshots.
package capture
