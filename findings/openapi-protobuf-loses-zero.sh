#!/usr/bin/env bash
# kube-openapi (July 2026) with gnostic-models v0.7.1: one would expect that the OpenAPI document of an API
# server says the same as JSON and as protobuf, the form that client-go's discovery asks for in version 2.
# In protobuf a bound of 0 is no bound. A schema loses minimum, maximum, maxLength and maxItems of 0,
# without an error, so that a tool that validates with this form accepts a port of -1. Other bounds and a
# default of 0 stay. In version 3 a default that is an object or a list becomes null, while version 2 keeps
# it.
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

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	for _, schema := range []string{`"type":"integer","minimum":0`, `"type":"integer","minimum":1`,
		`"type":"number","maximum":0`, `"type":"string","maxLength":0`, `"type":"array","maxItems":0`,
		`"type":"integer","default":0`, `"type":"object","default":{"a":1}`, `"type":"array","default":[]`} {
		const start = `{"info":{"title":"a","version":"1"},"paths":{},`
		text2 := start + `"swagger":"2.0","definitions":{"A":{` + schema + `}}}`
		text3 := start + `"openapi":"3.0.0","components":{"schemas":{"A":{` + schema + `}}}}`
		var document2 openapi_v2.Document
		var document3 openapi_v3.Document
		encoded2 := must(proto.Marshal(must(openapi_v2.ParseDocument([]byte(text2)))))
		encoded3 := must(proto.Marshal(must(openapi_v3.ParseDocument([]byte(text3)))))
		must(0, proto.Unmarshal(encoded2, &document2))
		must(0, proto.Unmarshal(encoded3, &document3))
		var swagger spec.Swagger
		must(swagger.FromGnostic(&document2))
		var decoded struct {
			Components struct{ Schemas map[string]any }
		}
		must(0, yaml.Unmarshal(must(document3.YAMLValue("")), &decoded))
		inVersion2 := must(json.Marshal(swagger.Definitions["A"]))
		inVersion3 := must(json.Marshal(decoded.Components.Schemas["A"]))
		fmt.Printf("%s: v2 %s v3 %s\n", schema, inVersion2, inVersion3)
	}
}
END
go get k8s.io/kube-openapi@v0.0.0-20260721132016-d427ff9ee9ad \
	github.com/google/gnostic-models@v0.7.1 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
"type":"integer","minimum":0: v2 {"type":"integer"} v3 {"type":"integer"}
"type":"integer","minimum":1: v2 {"type":"integer","minimum":1} v3 {"minimum":1,"type":"integer"}
"type":"number","maximum":0: v2 {"type":"number"} v3 {"type":"number"}
"type":"string","maxLength":0: v2 {"type":"string"} v3 {"type":"string"}
"type":"array","maxItems":0: v2 {"type":"array"} v3 {"type":"array"}
"type":"integer","default":0: v2 {"type":"integer","default":0} v3 {"default":0,"type":"integer"}
"type":"object","default":{"a":1}: v2 {"type":"object","default":{"a":1}} v3 {"default":null,"type":"object"}
"type":"array","default":[]: v2 {"type":"array","default":[]} v3 {"default":null,"type":"array"}
END
