#!/usr/bin/env bash
# kube-openapi (July 2026), which validates custom resources: format byte is base64, and the base64 of no bytes is the empty text, which
# Go writes for an empty []byte and reads back. A schema with this format refuses the empty text. The field of a custom resource that
# a controller fills from []byte{} cannot be stored, although its generated schema has type string and format byte. A nil slice is
# written as null, which the schema refuses without nullable.
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

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

func main() {
	schema := spec.StringProperty()
	schema.Format = "byte"
	validator := validate.NewSchemaValidator(schema, nil, "data", strfmt.Default)
	for _, data := range [][]byte{[]byte("a"), {}, nil} {
		text, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			panic(err)
		}
		result := validator.Validate(value)
		fmt.Println(string(text), result.IsValid(), result.Errors)
	}
}
END
go get k8s.io/kube-openapi@v0.0.0-20260721132016-d427ff9ee9ad 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
"YQ==" true []
"" false [data in body must be of type byte: ""]
null false [data in body must be of type string: "null"]
END
