// Package program runs the command crdcache, for main packages that link more than it needs, such as CEL.
package program

import "github.com/crdcache/crdcache/cmd/crdcache/internal/cli"

// Run runs the command with the arguments of the process, and returns the exit code.
func Run() int { return cli.Program() }
