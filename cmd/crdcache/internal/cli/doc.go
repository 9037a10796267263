// Package cli is the command line: the root command, the verbs, each in a file of its name and in more that
// begin with it, and the one place where an error becomes a line on stderr and an exit code.
package cli

//go:generate go run ../reference -page ../../../../docs/cli.md
