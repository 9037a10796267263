#!/usr/bin/env bash
# client-go v0.37.2: one would expect that an informer over the fake client reports what it reports over a server. The fake lists by
# the label selector but watches without it, so that an informer with a selector holds the objects outside of it that were created
# after its start, and keeps those whose label changed, which a server deletes from the watch. Its objects have no resourceVersion, so
# that the usual test of an update handler, "equal versions are a resync", skips every update. Both hide faults of a controller.
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
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"
)

func gate(name, team string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("example.com/v1")
	object.SetKind("Gate")
	object.SetNamespace("web")
	object.SetName(name)
	object.SetLabels(map[string]string{"team": team})
	return object
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gates"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{gvr: "GateList"}, gate("blue-before", "blue"), gate("red-before", "red"))
	informer := dynamicinformer.NewFilteredDynamicInformer(client, gvr, "web", 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.LabelSelector = "team=blue"
	}).Informer()
	updates := make(chan bool, 9)
	must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		updates <- before.(metav1.Object).GetResourceVersion() == after.(metav1.Object).GetResourceVersion()
	}}))
	go informer.RunWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	show := func(when string) {
		keys := informer.GetStore().ListKeys()
		slices.Sort(keys)
		fmt.Println(when, keys)
	}
	show("synced:")
	gates := client.Resource(gvr).Namespace("web")
	must(gates.Create(ctx, gate("red-after", "red"), metav1.CreateOptions{}))
	must(gates.Update(ctx, gate("blue-before", "red"), metav1.UpdateOptions{}))
	select {
	case equal := <-updates:
		fmt.Println("update with equal resource versions:", equal)
	case <-time.After(20 * time.Second):
		fmt.Println("no update")
	}
	show("after one create and one update, both to team=red:")
	list := must(gates.List(ctx, metav1.ListOptions{LabelSelector: "team=blue"}))
	fmt.Println("list of team=blue:", len(list.Items), "objects")
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
synced: [web/blue-before]
update with equal resource versions: true
after one create and one update, both to team=red: [web/blue-before web/red-after]
list of team=blue: 0 objects
END
