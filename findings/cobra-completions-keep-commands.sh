#!/usr/bin/env bash
# cobra v1.10.2: RegisterFlagCompletionFunc stores the function in a map of the package, by the flag, and
# nothing removes it. A program that builds a command tree for each request or test therefore keeps every
# tree that has such a function: flags, values, and all that the function refers to. A tree whose function
# is a field of the command (ValidArgsFunction) is freed.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"
	"runtime"
	"weak"

	"github.com/spf13/cobra"
)

func newCommand(completesFlag bool) *cobra.Command {
	c := &cobra.Command{Use: "example"}
	c.Flags().String("output", "", "")
	complete := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{c.Name()}, cobra.ShellCompDirectiveNoFileComp
	}
	c.ValidArgsFunction = complete
	if completesFlag {
		if err := c.RegisterFlagCompletionFunc("output", complete); err != nil {
			panic(err)
		}
	}
	return c
}

func main() {
	for _, completesFlag := range []bool{false, true} {
		var commands []weak.Pointer[cobra.Command]
		for range 100 {
			commands = append(commands, weak.Make(newCommand(completesFlag)))
		}
		runtime.GC()
		runtime.GC()
		alive := 0
		for _, c := range commands {
			if c.Value() != nil {
				alive++
			}
		}
		fmt.Printf("completes a flag: %t, %d of 100 commands are alive\n", completesFlag, alive)
	}
}
END
go get github.com/spf13/cobra@v1.10.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
completes a flag: false, 0 of 100 commands are alive
completes a flag: true, 100 of 100 commands are alive
END
