// Package cli is the command line: the root command, and the one place where an error becomes a line on
// stderr and an exit code. Each verb lives in a package of its own below this one.
package cli

//go:generate go run ./reference/generate -page ../../../../docs/cli.md
