#!/usr/bin/env bash
# apimachinery and client-go v0.37.2: one would expect that a strategic merge patch adds a new list element at the end, as server-side
# apply and JSON Patch with "-" do. It puts new elements in front of the old ones. A "kubectl patch" that adds an init container
# runs it first, and the same YAML with "kubectl apply --server-side" runs it last. A new variable with the value "http://$(HOST)"
# stands before HOST, so that the kubelet leaves $(HOST) as it is. Patches that kubectl computes, for apply and edit, hold the order.
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

const added = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "finalizers": ["example.com/new"]}, "spec": {
	"initContainers": [{"name": "new"}],
	"containers": [{"name": "web", "env": [{"name": "URL", "value": "http://$(HOST)"}]}]
}}`

func main() {
	ctx := context.Background()
	for _, patchType := range []types.PatchType{types.StrategicMergePatchType, types.ApplyPatchType} {
		client := fake.NewClientset(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Finalizers: []string{"example.com/old"}},
			Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "old"}},
				Containers:     []corev1.Container{{Name: "web", Env: []corev1.EnvVar{{Name: "HOST", Value: "db"}}}},
			},
		})
		pod, err := client.CoreV1().Pods("default").Patch(ctx, "web", patchType, []byte(added), metav1.PatchOptions{FieldManager: "tool"})
		if err != nil {
			panic(err)
		}
		fmt.Println(patchType)
		for _, container := range pod.Spec.InitContainers {
			fmt.Println("  init container", container.Name)
		}
		for _, variable := range pod.Spec.Containers[0].Env {
			fmt.Println("  variable", variable.Name)
		}
		fmt.Println("  finalizers", pod.Finalizers)
	}
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
application/strategic-merge-patch+json
  init container new
  init container old
  variable URL
  variable HOST
  finalizers [example.com/new example.com/old]
application/apply-patch+yaml
  init container old
  init container new
  variable HOST
  variable URL
  finalizers [example.com/old example.com/new]
END
