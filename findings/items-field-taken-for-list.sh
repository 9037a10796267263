#!/usr/bin/env bash
# apimachinery and cli-runtime v0.37.2: one would expect that a manifest of a custom resource is one object, whatever its fields are
# named. The decoder of unstructured objects takes each object with a top-level field "items" for a list, without a look at its kind. The
# reader of kubectl then drops the object and takes each element for an object of the same kind. It reads nothing from an empty list,
# without an error, and fails for a map or for texts. json.Unmarshal into the same Go type, which the dynamic client uses, keeps the
# object. API servers accept a CRD whose schema has such a field.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func main() {
	for _, field := range []string{`"lines": [{"sku": "a"}]`, `"items": [{"sku": "a"}]`, `"items": []`, `"items": ["a"]`, `"items": {"a": 1}`} {
		manifest := `{"apiVersion": "example.com/v1", "kind": "Order", "metadata": {"name": "web"}, ` + field + `}`
		fmt.Println(field)
		var order unstructured.Unstructured
		if err := json.Unmarshal([]byte(manifest), &order); err != nil {
			panic(err)
		}
		fmt.Println("  unmarshaled:", order.GetKind(), order.GetName(), len(order.Object), "fields")

		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, manifest)
		}))
		orders := dynamic.NewForConfigOrDie(&rest.Config{Host: server.URL}).
			Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "orders"})
		got, err := orders.Get(context.Background(), "web", metav1.GetOptions{})
		if err != nil {
			panic(err)
		}
		server.Close()
		fmt.Println("  dynamic client:", got.GetKind(), got.GetName(), len(got.Object), "fields")

		decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, []byte(manifest))
		fmt.Printf("  decoded: %T, error: %t\n", decoded, err != nil)
		read, err := resource.NewBuilder(genericclioptions.NewConfigFlags(false)).Unstructured().Local().
			Stream(strings.NewReader(manifest), "manifest").Flatten().Do().Infos()
		fmt.Printf("  kubectl reads: %d, error: %t\n", len(read), err != nil)
		for _, info := range read {
			fmt.Println("   ", info.Object.(*unstructured.Unstructured).Object)
		}
	}
}
END
go get k8s.io/{cli-runtime,client-go,api,apimachinery}@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
"lines": [{"sku": "a"}]
  unmarshaled: Order web 4 fields
  dynamic client: Order web 4 fields
  decoded: *unstructured.Unstructured, error: false
  kubectl reads: 1, error: false
    map[apiVersion:example.com/v1 kind:Order lines:[map[sku:a]] metadata:map[name:web]]
"items": [{"sku": "a"}]
  unmarshaled: Order web 4 fields
  dynamic client: Order web 4 fields
  decoded: *unstructured.UnstructuredList, error: false
  kubectl reads: 1, error: false
    map[apiVersion:example.com/v1 kind:Order sku:a]
"items": []
  unmarshaled: Order web 4 fields
  dynamic client: Order web 4 fields
  decoded: *unstructured.UnstructuredList, error: false
  kubectl reads: 0, error: false
"items": ["a"]
  unmarshaled: Order web 4 fields
  dynamic client: Order web 4 fields
  decoded: <nil>, error: true
  kubectl reads: 0, error: true
"items": {"a": 1}
  unmarshaled: Order web 4 fields
  dynamic client: Order web 4 fields
  decoded: <nil>, error: true
  kubectl reads: 0, error: true
END
