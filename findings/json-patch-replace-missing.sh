#!/usr/bin/env bash
# gopkg.in/evanphx/json-patch.v4 v4.13.0 and github.com/evanphx/json-patch/v5 v5.9.11: v4, which the API
# server applies, creates the key that a replace operation does not find, and copies a missing key as
# null. RFC 6902 and v5 reject both. A unit test that applies a patch with v5 thus fails where the server
# succeeds. A missing parent and a missing key of remove are errors in both.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	v5 "github.com/evanphx/json-patch/v5"
	v4 "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	object := []byte(`{"spec":{}}`)
	for _, operation := range []string{
		`{"op":"replace","path":"/spec/replicas","value":7}`,
		`{"op":"copy","from":"/spec/replicas","path":"/spec/before"}`,
		`{"op":"remove","path":"/spec/replicas"}`,
		`{"op":"replace","path":"/status/replicas","value":7}`,
	} {
		patch4, err := v4.DecodePatch([]byte("[" + operation + "]"))
		if err != nil {
			panic(err)
		}
		patch5, err := v5.DecodePatch([]byte("[" + operation + "]"))
		if err != nil {
			panic(err)
		}
		out4, err4 := patch4.Apply(object)
		out5, err5 := patch5.Apply(object)
		fmt.Println(operation)
		fmt.Println("  v4:", string(out4), "error:", err4 != nil)
		fmt.Println("  v5:", string(out5), "error:", err5 != nil)
	}
}
END
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 github.com/evanphx/json-patch/v5@v5.9.11 2>/dev/null
go run . | tee seen
diff - seen <<'END'
{"op":"replace","path":"/spec/replicas","value":7}
  v4: {"spec":{"replicas":7}} error: false
  v5:  error: true
{"op":"copy","from":"/spec/replicas","path":"/spec/before"}
  v4: {"spec":{"before":null}} error: false
  v5:  error: true
{"op":"remove","path":"/spec/replicas"}
  v4:  error: true
  v5:  error: true
{"op":"replace","path":"/status/replicas","value":7}
  v4:  error: true
  v5:  error: true
END
