#!/usr/bin/env bash
# gopkg.in/evanphx/json-patch v4.13.0: the operation test compares numbers as texts, so that 1 differs
# from 1.0 and 1e0, although RFC 6902 asks for numerical equality. It takes a missing key for null,
# although the location must exist: a guard against overwriting a null passes for an object without the
# key. Below a missing key it fails.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	object := []byte(`{"weight":1,"owner":null}`)
	for _, test := range []string{`"/weight","value":1`, `"/weight","value":1.0`, `"/weight","value":1e0`,
		`"/owner","value":null`, `"/missing","value":null`, `"/missing/deeper","value":null`} {
		patch, err := jsonpatch.DecodePatch([]byte(`[{"op":"test","path":` + test + `}]`))
		if err != nil {
			panic(err)
		}
		_, err = patch.Apply(object)
		fmt.Printf("test %s: passes %t\n", test, err == nil)
	}
}
END
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
test "/weight","value":1: passes true
test "/weight","value":1.0: passes false
test "/weight","value":1e0: passes false
test "/owner","value":null: passes true
test "/missing","value":null: passes true
test "/missing/deeper","value":null: passes false
END
