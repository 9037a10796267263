#!/usr/bin/env bash
# kro v0.9.4: one would expect that an optional object of a SimpleSchema stays absent if the user omits it,
# and that defaults inside it apply once it is there, as in other CRDs. kro gives an object the default {}
# if a field in it has a default, and so on outwards. The API server then adds the object, and the condition
# has(schema.spec.tls) is always true. One required field in the object turns this off: then it stays
# absent. To add "required=true" to a field can thus change which resources an existing instance has.
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

	"github.com/kubernetes-sigs/kro/pkg/simpleschema"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

func main() {
	for _, tls := range []string{`{"secret": "string", "port": "integer"}`,
		`{"secret": "string", "port": "integer | default=443"}`,
		`{"secret": "string", "listen": {"port": "integer | default=443"}}`,
		`{"secret": "string | required=true", "port": "integer | default=443"}`} {
		var simple map[string]any
		if err := json.Unmarshal([]byte(`{"tls":`+tls+`}`), &simple); err != nil {
			panic(err)
		}
		properties, err := simpleschema.ToOpenAPISpec(simple, nil)
		if err != nil {
			panic(err)
		}
		var internal apiextensions.JSONSchemaProps
		err = v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(properties, &internal, nil)
		if err != nil {
			panic(err)
		}
		structural, err := schema.NewStructural(&internal)
		if err != nil {
			panic(err)
		}
		spec := map[string]any{}
		defaulting.Default(spec, structural)
		fmt.Println(tls, spec)
	}
}
END
go get github.com/kubernetes-sigs/kro@v0.9.4 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
{"secret": "string", "port": "integer"} map[]
{"secret": "string", "port": "integer | default=443"} map[tls:map[port:443]]
{"secret": "string", "listen": {"port": "integer | default=443"}} map[tls:map[listen:map[port:443]]]
{"secret": "string | required=true", "port": "integer | default=443"} map[]
END
