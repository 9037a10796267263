#!/usr/bin/env bash
# client-go v0.37.2, util/jsonpath, as kubectl's -o jsonpath and the printer columns of CRDs use it: one would expect that a slice
# such as [0:5] selects at most five elements, as in JSONPath's RFC 9535, or at least that AllowMissingKeys, which both set, accepts
# a shorter list. It is an error for every list with fewer elements, also for an empty one, so that "the first five" fails exactly
# where little is found. Only an end of -1, and an end equal to the length, work as elsewhere; a missing key is accepted.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"bytes"
	"fmt"

	"k8s.io/client-go/util/jsonpath"
)

func main() {
	data := map[string]any{"two": []any{"a", "b"}, "none": []any{}}
	for _, path := range []string{"{.two[0:2]}", "{.two[0:5]}", "{.two[1:5]}", "{.two[:-1]}", "{.two[-5:]}", "{.none[0:5]}", "{.missing[0:5]}"} {
		j, out := jsonpath.New("").AllowMissingKeys(true), new(bytes.Buffer)
		if err := j.Parse(path); err != nil {
			panic(err)
		}
		err := j.Execute(out, data)
		fmt.Printf("%s: %q, %v\n", path, out, err)
	}
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
{.two[0:2]}: "a b", <nil>
{.two[0:5]}: "", array index out of bounds: index 4, length 2
{.two[1:5]}: "", array index out of bounds: index 4, length 2
{.two[:-1]}: "a", <nil>
{.two[-5:]}: "", array index out of bounds: index -3, length 2
{.none[0:5]}: "", array index out of bounds: index 0, length 0
{.missing[0:5]}: "", <nil>
END
