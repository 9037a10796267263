// Package cli implements the command line: the root command, the small verbs (each in the files that start
// with its name), help, and the conversion of errors into messages and exit codes.
package cli
