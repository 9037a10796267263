#!/usr/bin/env bash
# pflag v1.1.0: a flag of type StringSlice that receives several lines, such as "$(kubectl config
# get-contexts -o name)", keeps the elements of the first line. The other lines are gone: Set returns no
# error. The map flag StringToString reads the same CSV and rejects such a value, and IntSlice takes the
# newline as part of a number and rejects it, too.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

func main() {
	flags := pflag.NewFlagSet("example", pflag.ContinueOnError)
	texts := flags.StringSlice("texts", nil, "")
	flags.StringToString("pairs", nil, "")
	flags.IntSlice("numbers", nil, "")
	err := flags.Set("texts", "north,south\neast\nwest")
	fmt.Printf("StringSlice: %q, %v\n", *texts, err)
	fmt.Println("StringToString is rejected:", flags.Set("pairs", "a=1,b=2\nc=3") != nil)
	fmt.Println("IntSlice is rejected:", flags.Set("numbers", "1,2\n3") != nil)
}
END
go get github.com/spf13/pflag@v1.1.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
StringSlice: ["north" "south"], <nil>
StringToString is rejected: true
IntSlice is rejected: true
END
