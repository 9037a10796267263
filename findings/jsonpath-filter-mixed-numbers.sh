#!/usr/bin/env bash
# client-go v0.37.2: a JSONPath filter that compares numbers fails for the whole list as soon as one
# element holds an integer and the filter a fraction, or the reverse. The decoder reads a weight of 1 as
# int64 and 0.5 as float64, so that no constant fits both. A null element fails too, while an element
# without the field is skipped if missing keys are allowed.
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

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

func main() {
	lists := []string{`[{"weight": 0.5}]`, `[{"weight": 0.5}, {"weight": 1}]`, `[{"weight": 1}]`,
		`[{"weight": 1}, {}]`, `[{"weight": 1}, {"weight": null}]`}
	for _, list := range lists {
		var object map[string]any
		if err := json.Unmarshal([]byte(`{"targets": `+list+`}`), &object); err != nil {
			panic(err)
		}
		fmt.Println(list)
		for _, bound := range []string{"0.2", "0"} {
			path := jsonpath.New("weights").AllowMissingKeys(true)
			if err := path.Parse("{.targets[?(@.weight>" + bound + ")].weight}"); err != nil {
				panic(err)
			}
			var out bytes.Buffer
			err := path.Execute(&out, object)
			fmt.Printf("  above %s: %q %v\n", bound, out.String(), err)
		}
	}
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
[{"weight": 0.5}]
  above 0.2: "0.5" <nil>
  above 0: "" incompatible types for comparison
[{"weight": 0.5}, {"weight": 1}]
  above 0.2: "" incompatible types for comparison
  above 0: "" incompatible types for comparison
[{"weight": 1}]
  above 0.2: "" incompatible types for comparison
  above 0: "1" <nil>
[{"weight": 1}, {}]
  above 0.2: "" incompatible types for comparison
  above 0: "1" <nil>
[{"weight": 1}, {"weight": null}]
  above 0.2: "" incompatible types for comparison
  above 0: "" invalid type for comparison
END
