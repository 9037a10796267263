#!/usr/bin/env bash
# apimachinery v0.37.2: resource.ParseQuantity takes texts without a digit, such as "m", "Ki" or ".", for zero. It returns no
# error, although the expression in its own error text requires a digit or a point before the suffix. A value that lost its
# number thus reads as 0. A suffix that does not exist, and an empty text, are errors.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, text := range []string{"1Ki", "Ki", "m", "+", ".", "Kb", ""} {
		q, err := resource.ParseQuantity(text)
		fmt.Printf("%q: %s, error: %t\n", text, q.String(), err != nil)
	}
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
"1Ki": 1Ki, error: false
"Ki": 0, error: false
"m": 0, error: false
"+": 0, error: false
".": 0, error: false
"Kb": 0, error: true
"": 0, error: true
END
