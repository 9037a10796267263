#!/usr/bin/env bash
# apimachinery v0.37.2: the Go type of a number in an unstructured object depends on the path that the
# object took. JSON and CBOR keep 1.0 and 1e3 as float64. YAML and a second pass through JSON make int64
# of them, for the writer drops the fraction. The typed helpers and DeepEqual then differ for equal
# objects. An integer above the range of int64 becomes a float64 without an error.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	for _, number := range []string{"1.0", "1e3", "9223372036854775808"} {
		var first, again, cbor, fromYAML map[string]any
		text := []byte(`{"v": ` + number + `}`)
		must(json.Unmarshal(text, &first))
		must(yaml.Unmarshal(text, &fromYAML))
		out, err := json.Marshal(first)
		must(err)
		must(json.Unmarshal(out, &again))
		binary, err := direct.Marshal(first)
		must(err)
		must(direct.Unmarshal(binary, &cbor))
		fmt.Printf("%s: JSON %T, CBOR %T, YAML %T; written %s, read %T\n", number,
			first["v"], cbor["v"], fromYAML["v"], out, again["v"])
		_, _, err = unstructured.NestedFloat64(again, "v")
		fmt.Println("  equal:", equality.Semantic.DeepEqual(first, again), "NestedFloat64 error:", err != nil)
	}
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
1.0: JSON float64, CBOR float64, YAML int64; written {"v":1}, read int64
  equal: false NestedFloat64 error: true
1e3: JSON float64, CBOR float64, YAML int64; written {"v":1000}, read int64
  equal: false NestedFloat64 error: true
9223372036854775808: JSON float64, CBOR float64, YAML float64; written {"v":9223372036854776000}, read float64
  equal: true NestedFloat64 error: false
END
