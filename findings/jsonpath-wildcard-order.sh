#!/usr/bin/env bash
# client-go v0.37.2 and apiextensions-apiserver v0.37.2: one would expect the values of a map in the order of its keys, because JSON,
# YAML and go-template write maps sorted. The wildcard of JSONPath walks maps in Go's random order. Two runs of kubectl get -o
# jsonpath='{.data.*}' on one object differ. A printer column with such a path shows the first value only, so that its cell changes
# while the object does not.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

func main() {
	data := map[string]any{}
	for i := range 8 {
		data[fmt.Sprint("key", i)] = fmt.Sprint("value", i)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"data": data, "list": []any{"a", "b", "c", "d"}}}
	for _, path := range []string{"{.list.*}", "{.data.*}", "{..key3}"} {
		parser := jsonpath.New("")
		if err := parser.Parse(path); err != nil {
			panic(err)
		}
		outputs := map[string]bool{}
		for range 200 {
			var text strings.Builder
			if err := parser.Execute(&text, object.Object); err != nil {
				panic(err)
			}
			outputs[text.String()] = true
		}
		fmt.Println(path, "more than one output:", len(outputs) > 1)
	}
	table, err := tableconvertor.New([]apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "First", Type: "string", JSONPath: ".data.*"}})
	if err != nil {
		panic(err)
	}
	cells := map[any]bool{}
	for range 200 {
		rows, err := table.ConvertToTable(nil, object, nil)
		if err != nil {
			panic(err)
		}
		cells[rows.Rows[0].Cells[1]] = true
	}
	fmt.Println("column .data.* more than one value:", len(cells) > 1)
}
END
go get k8s.io/apiextensions-apiserver@v0.37.2 k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
{.list.*} more than one output: false
{.data.*} more than one output: true
{..key3} more than one output: false
column .data.* more than one value: true
END
