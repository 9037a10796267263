// Package cmd is the sandbox's command line. Each command parses its flags into an options struct and passes
// it to one function. [Main] decides the exit codes.
package cmd
