#!/usr/bin/env bash
# sigs.k8s.io/yaml v1.6.0: a number that YAML holds where a Go type wants text is formatted with the
# precision of a 32-bit float, although it was parsed with 64 bits. The date-like release 20250101.5
# becomes "2.0250102e+07" in a map of strings, without an error of the strict mode. Map keys are
# formatted so for every target, so that the JSON form has the wrong key too. The same number as a value
# in the JSON form keeps its digits.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

func main() {
	for _, text := range []string{"data: {release: 20250101.5}", "data: {20250101.5: stable}"} {
		var typed struct {
			Data map[string]string `json:"data"`
		}
		err := yaml.UnmarshalStrict([]byte(text), &typed)
		fmt.Println("strings:", typed.Data, err)
		json, err := yaml.YAMLToJSONStrict([]byte(text))
		fmt.Println("JSON:", string(json), err)
	}
}
END
go get sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
strings: map[release:2.0250102e+07] <nil>
JSON: {"data":{"release":20250101.5}} <nil>
strings: map[2.0250102e+07:stable] <nil>
JSON: {"data":{"2.0250102e+07":"stable"}} <nil>
END
