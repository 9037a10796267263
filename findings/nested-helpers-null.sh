#!/usr/bin/env bash
# apimachinery v0.37.2: the typed helpers of unstructured return an error for a field that is null, as if it had a wrong type.
# Go types without omitempty write such fields, for example "status.conditions: null" of CRDs written by a generator, and API
# servers take null for not set. NestedFieldNoCopy differs: below a null it finds nothing, without an error.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	object := map[string]any{"status": map[string]any{"conditions": nil}}
	_, found, err := unstructured.NestedSlice(object, "status", "conditions")
	fmt.Println("NestedSlice of null:", found, err)
	_, found, err = unstructured.NestedMap(object, "status", "conditions")
	fmt.Println("NestedMap of null:", found, err)
	value, found, err := unstructured.NestedFieldNoCopy(object, "status", "conditions")
	fmt.Println("NestedFieldNoCopy of null:", value, found, err)
	_, found, err = unstructured.NestedFieldNoCopy(object, "status", "conditions", "below")
	fmt.Println("NestedFieldNoCopy below null:", found, err)
	_, found, err = unstructured.NestedSlice(object, "status", "conditions", "below")
	fmt.Println("NestedSlice below null:", found, err)
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
NestedSlice of null: false .status.conditions accessor error: <nil> is of the type <nil>, expected []interface{}
NestedMap of null: false .status.conditions accessor error: <nil> is of the type <nil>, expected map[string]interface{}
NestedFieldNoCopy of null: <nil> true <nil>
NestedFieldNoCopy below null: false <nil>
NestedSlice below null: false <nil>
END
