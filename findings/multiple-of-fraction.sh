#!/usr/bin/env bash
# kube-openapi (July 2026), which validates custom resources: the schema {type: number, multipleOf: 2.5} should accept 5 and refuse 4.
# It does so for 5.0 and 4.0. A number without a fraction is an int64, and then the factor is cut to an integer first: 5 is no multiple
# of 2, and 4 is one. With a factor below 1, as the usual 0.01 for prices, each whole number is refused, and the error says that the
# schema's factor must be positive.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

func main() {
	for _, factor := range []string{"2.5", "0.01"} {
		var schema spec.Schema
		if err := json.Unmarshal([]byte(`{"type": "number", "multipleOf": `+factor+`}`), &schema); err != nil {
			panic(err)
		}
		validator := validate.NewSchemaValidator(&schema, nil, "price", strfmt.Default)
		for _, number := range []string{"5.0", "5", "4.0", "4"} {
			var value any
			if err := json.Unmarshal([]byte(number), &value); err != nil {
				panic(err)
			}
			result := validator.Validate(value)
			fmt.Println(factor, number, result.IsValid(), result.Errors)
		}
	}
}
END
go get k8s.io/apimachinery@v0.37.2 k8s.io/kube-openapi@v0.0.0-20260721132016-d427ff9ee9ad 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
2.5 5.0 true []
2.5 5 false [price in body should be a multiple of 2]
2.5 4.0 false [price in body should be a multiple of 2.5]
2.5 4 true []
0.01 5.0 true []
0.01 5 false [factor MultipleOf declared for price must be positive: 0]
0.01 4.0 true []
0.01 4 false [factor MultipleOf declared for price must be positive: 0]
END
