#!/usr/bin/env bash
# apimachinery v0.37.2: one would expect that FromUnstructured rejects an integer that does not fit the field of the Go type, because
# encoding/json does and the converter rejects a fraction or a text. It converts as Go's conversion operator instead: 5000000000
# becomes 705032704 in an int32, and -1 becomes 4294967295 in a uint32, without an error. A schema without a format or a maximum
# lets such a number into the cluster. A controller that converts the objects of a dynamic informer then works with the wrong number,
# while the typed client returns an error. The strict mode reports nothing either.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

type limits struct {
	Bytes int32  `json:"bytes"`
	Slots uint32 `json:"slots"`
}

func main() {
	for _, object := range []map[string]any{
		{"bytes": int64(5000000000)}, {"slots": int64(-1)}, {"bytes": 1.5}, {"bytes": "1"},
	} {
		encoded, _ := json.Marshal(object)
		var byJSON, converted limits
		err := json.Unmarshal(encoded, &byJSON)
		fmt.Printf("%s: JSON rejects %t", encoded, err != nil)
		err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &converted, true)
		fmt.Printf(", converter rejects %t", err != nil)
		if err == nil {
			fmt.Printf(" and returns %+v", converted)
		}
		fmt.Println()
	}
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
{"bytes":5000000000}: JSON rejects true, converter rejects false and returns {Bytes:705032704 Slots:0}
{"slots":-1}: JSON rejects true, converter rejects false and returns {Bytes:0 Slots:4294967295}
{"bytes":1.5}: JSON rejects true, converter rejects true
{"bytes":"1"}: JSON rejects true, converter rejects true
END
