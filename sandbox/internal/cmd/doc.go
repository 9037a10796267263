// Package cmd is the sandbox's command line. Each command parses its flags
// into an options struct and hands it to one function; exit codes are decided
// in [Main].
package cmd
