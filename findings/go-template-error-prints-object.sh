#!/usr/bin/env bash
# cli-runtime v0.37.2, kubectl's printer of Go templates: one would expect that a template that fails gives an error and no output
# beyond that of its beginning, so that scripts can log the output. It writes the error and the whole object into the
# output, twice, as JSON and as a Go value, also the fields that the template does not name, such as the other values of a Secret.
# The printer of JSONPath writes its details into the error alone.
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
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
)

func main() {
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": "a"}, "data": map[string]any{"user": "YQ==", "key": "b3RoZXI="}}}
	inTemplate, err := printers.NewGoTemplatePrinter([]byte(`{{.metadata.name}} {{index .list 1}}`))
	if err != nil {
		panic(err)
	}
	inPath, err := printers.NewJSONPathPrinter(`{.metadata.name} {.list[1]}`)
	if err != nil {
		panic(err)
	}
	for name, printer := range map[string]printers.ResourcePrinter{"template": inTemplate, "jsonpath": inPath} {
		var out bytes.Buffer
		err := printer.PrintObj(secret, &out)
		fmt.Printf("%s: failed %t, starts with %q, prints the other value %d times\n", name, err != nil,
			out.String()[:min(out.Len(), 10)], strings.Count(out.String(), "b3RoZXI="))
	}
}
END
go get k8s.io/cli-runtime@v0.37.2 2>/dev/null
go mod tidy 2>/dev/null
out=$(go run . | sort)
echo "$out"
grep -qx 'template: failed true, starts with "a Error ex", prints the other value 2 times' <<<"$out"
grep -q '^jsonpath: failed true, .*prints the other value 0 times$' <<<"$out"
