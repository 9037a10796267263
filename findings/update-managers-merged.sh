#!/usr/bin/env bash
# apimachinery v0.37.2, as API servers use it: one would expect that managedFields names who wrote a field. Only ten managers of updates
# are kept. With the eleventh, the two oldest become one manager named "ancient-changes", and each further one adds its oldest. An
# apply that changes such a field conflicts with this name, which no client has, and a program that asks which controller set a
# field finds none. Managers that apply are not counted. Tests of the fake clientset show it too.
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
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func main() {
	ctx := context.Background()
	maps := fake.NewClientset().CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"m01": "set"}}
	object, err := maps.Create(ctx, object, metav1.CreateOptions{FieldManager: "m01"})
	if err != nil {
		panic(err)
	}
	for i := 2; i <= 12; i++ {
		name := fmt.Sprintf("m%02d", i)
		object.Data = map[string]string{}
		for j := 1; j <= i; j++ {
			object.Data[fmt.Sprintf("m%02d", j)] = "set"
		}
		if object, err = maps.Update(ctx, object, metav1.UpdateOptions{FieldManager: name}); err != nil {
			panic(err)
		}
		if i >= 10 {
			fmt.Printf("%d writers:", i)
			for _, entry := range object.ManagedFields {
				fmt.Print(" ", entry.Manager)
			}
			fmt.Println()
		}
	}
	for _, key := range []string{"m02", "m12"} {
		_, err := maps.Apply(ctx, applycorev1.ConfigMap("settings", "default").WithData(map[string]string{key: "changed"}),
			metav1.ApplyOptions{FieldManager: "deployer"})
		fmt.Println(err)
	}
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
10 writers: m01 m02 m03 m04 m05 m06 m07 m08 m09 m10
11 writers: ancient-changes m03 m04 m05 m06 m07 m08 m09 m10 m11
12 writers: ancient-changes m04 m05 m06 m07 m08 m09 m10 m11 m12
Apply failed with 1 conflict: conflict with "ancient-changes" using v1: .data.m02
Apply failed with 1 conflict: conflict with "m12" using v1: .data.m12
END
