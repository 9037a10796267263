#!/usr/bin/env bash
# controller-runtime v0.25.2: one would expect that a client of NewNamespacedClient refuses other namespaces
# in every call. Its comment says that it enforces its namespace, and the calls for one object, such as Get,
# Delete or an update of the status, return an error. List and DeleteAllOf replace the namespace of their
# options by the client's own, without an error. With a client for production, DeleteAllOf with
# InNamespace("staging") deletes the objects in production and keeps those in staging.
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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func show(text string, reader client.Reader, options ...client.ListOption) {
	var pods corev1.PodList
	err := reader.List(context.Background(), &pods, options...)
	fmt.Print(text, ":")
	for _, pod := range pods.Items {
		fmt.Printf(" %s/%s", pod.Namespace, pod.Name)
	}
	fmt.Println(" error:", err)
}

func main() {
	ctx := context.Background()
	mapper := meta.NewDefaultRESTMapper(nil)
	// A mapper by discovery knows the kinds of lists, too.
	for _, kind := range []string{"Pod", "PodList"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	all := fake.NewClientBuilder().WithRESTMapper(mapper).WithStatusSubresource(&corev1.Pod{}).
		WithObjects(pod("production", "a"), pod("production", "b"), pod("staging", "c")).Build()
	own := client.NewNamespacedClient(all, "production")

	other := client.InNamespace("staging")
	fmt.Println("get:", own.Get(ctx, client.ObjectKey{Namespace: "staging", Name: "c"}, &corev1.Pod{}))
	fmt.Println("delete:", own.Delete(ctx, pod("staging", "c")))
	fmt.Println("status:", own.Status().Update(ctx, pod("staging", "c")))
	show("list", own, other)
	fmt.Println("delete all of:", own.DeleteAllOf(ctx, &corev1.Pod{}, other))
	show("left", all)
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/api@v0.37.2 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
get: namespace staging provided for the object  does not match the namespace production on the client
delete: namespace staging of the object c does not match the namespace production on the client
status: namespace staging of the object c does not match the namespace production on the client
list: production/a production/b error: <nil>
delete all of: <nil>
left: staging/c error: <nil>
END
