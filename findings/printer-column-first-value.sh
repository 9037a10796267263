#!/usr/bin/env bash
# apiextensions-apiserver v0.37.2: a printer column whose JSONPath yields several values shows the first one only, without a mark that
# there are more. kubectl and -o jsonpath print all values of the same path. A column of type integer cuts the fraction of a number:
# 0.9 is shown as 0. A value of another type than the column's is an empty cell, so that "3" in an integer column looks unset, while a
# column of type string shows every value, also whole maps.
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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a"},
		"spec": map[string]any{
			"hosts": []any{"a.example.com", "b.example.com"},
			"load":  0.9,
			"count": "3",
			"map":   map[string]any{"key": "value"},
		},
	}}
	for _, column := range []apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Hosts", Type: "string", JSONPath: ".spec.hosts[*]"},
		{Name: "Load", Type: "integer", JSONPath: ".spec.load"},
		{Name: "Count", Type: "integer", JSONPath: ".spec.count"},
		{Name: "Count", Type: "string", JSONPath: ".spec.count"},
		{Name: "Map", Type: "string", JSONPath: ".spec.map"},
	} {
		convertor, err := tableconvertor.New([]apiextensionsv1.CustomResourceColumnDefinition{column})
		if err != nil {
			panic(err)
		}
		table, err := convertor.ConvertToTable(context.Background(), object, nil)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %s: %v\n", column.Type, column.JSONPath, table.Rows[0].Cells[1])
	}
}
END
go get k8s.io/apiextensions-apiserver@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
string .spec.hosts[*]: a.example.com
integer .spec.load: 0
integer .spec.count: <nil>
string .spec.count: 3
string .spec.map: {"key":"value"}
END
