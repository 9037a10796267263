// Package cli implements the command line: the root command, the verbs (each in the files that start with its
// name), and the conversion of errors into messages and exit codes.
package cli
