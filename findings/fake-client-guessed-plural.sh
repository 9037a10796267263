#!/usr/bin/env bash
# client-go v0.37.2: the fake dynamic client stores the objects of its constructor under a guessed plural. The guess replaces
# each y at the end by ies, also after a vowel: a Gateway is stored as "gatewaies". A list of gateways is then empty without
# an error, although the list kind of gateways was given. Objects that the client creates are found.
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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

func gateway(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
		"metadata": map[string]any{"namespace": "web", "name": name}}}
}

func main() {
	ctx := context.Background()
	gvr := schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}
	kinds := map[schema.GroupVersionResource]string{gvr: "GatewayList"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, gateway("given"))
	count := func(resource string) int {
		gvr.Resource = resource
		list, err := client.Tracker().List(gvr, schema.GroupVersionKind{Group: gvr.Group, Version: "v1", Kind: "Gateway"}, "web")
		if err != nil {
			return -1
		}
		return len(list.(*unstructured.UnstructuredList).Items)
	}
	list, err := client.Resource(gvr).Namespace("web").List(ctx, metav1.ListOptions{})
	fmt.Println("gateways of the constructor:", len(list.Items), err)
	fmt.Println("stored as gatewaies:", count("gatewaies"))
	gvr.Resource = "gateways"
	_, err = client.Resource(gvr).Namespace("web").Create(ctx, gateway("created"), metav1.CreateOptions{})
	list, _ = client.Resource(gvr).Namespace("web").List(ctx, metav1.ListOptions{})
	fmt.Println("after a create:", len(list.Items), err)
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
gateways of the constructor: 0 <nil>
stored as gatewaies: 1
after a create: 1 <nil>
END
