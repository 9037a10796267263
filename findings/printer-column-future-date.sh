#!/usr/bin/env bash
# apiextensions-apiserver v0.37.2: a printer column of type date shows the age of a time, so a time that lies ahead, such as the end of
# a certificate's validity, is shown as <invalid>, exactly like text that is no time. Five seconds of clock skew suffice. A column of
# type string shows the time itself.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	const path = ".status.notAfter"
	for _, notAfter := range []string{
		time.Now().Add(-time.Hour).Format(time.RFC3339),
		time.Now().Add(5 * time.Second).Format(time.RFC3339),
		time.Now().Add(90 * 24 * time.Hour).Format(time.RFC3339),
		"never",
		"9999-12-31T23:59:59Z",
	} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a"},
			"status":   map[string]any{"notAfter": notAfter},
		}}
		convertor, err := tableconvertor.New([]apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Expires", Type: "date", JSONPath: path}, {Name: "Expires", Type: "string", JSONPath: path}})
		if err != nil {
			panic(err)
		}
		table, err := convertor.ConvertToTable(context.Background(), object, nil)
		if err != nil {
			panic(err)
		}
		cells := table.Rows[0].Cells
		fmt.Printf("date column: %v, string column unchanged: %v\n", cells[1], cells[2] == notAfter)
	}
}
END
go get k8s.io/apiextensions-apiserver@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
date column: 60m, string column unchanged: true
date column: <invalid>, string column unchanged: true
date column: <invalid>, string column unchanged: true
date column: <invalid>, string column unchanged: true
date column: <invalid>, string column unchanged: true
END
