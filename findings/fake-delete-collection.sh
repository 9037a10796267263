#!/usr/bin/env bash
# client-go v0.37.2: one would expect that the fake clientset deletes by a selector, because it lists by one. DeleteCollection succeeds
# and deletes nothing, with both constructors and with the dynamic fake. A test of a cleanup thus fails for right code, and a test that
# the other objects stay passes for a wrong selector. Delete does more than a server: it removes an object that has a finalizer, and
# it ignores preconditions, so that it deletes the object although the given UID differs.
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

func pod(name, team string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"team": team},
			Finalizers: []string{"example.com/cleanup"}},
	}
}

func main() {
	ctx := context.Background()
	blue := metav1.ListOptions{LabelSelector: "team=blue"}
	objects := []runtime.Object{pod("a", "blue"), pod("b", "red")}
	for name, client := range map[string]*fake.Clientset{
		"NewClientset":       fake.NewClientset(objects...),
		"NewSimpleClientset": fake.NewSimpleClientset(objects...),
	} {
		pods := client.CoreV1().Pods("default")
		err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, blue)
		list, listErr := pods.List(ctx, blue)
		if listErr != nil {
			panic(listErr)
		}
		fmt.Println(name, "DeleteCollection:", err, "left:", len(list.Items))
		other := types.UID("other")
		err = pods.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
		list, listErr = pods.List(ctx, blue)
		if listErr != nil {
			panic(listErr)
		}
		fmt.Println(name, "Delete:", err, "left:", len(list.Items))
	}
	dynamicClient := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...)
	pods := dynamicClient.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("default")
	err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, blue)
	list, listErr := pods.List(ctx, blue)
	if listErr != nil {
		panic(listErr)
	}
	fmt.Println("dynamic DeleteCollection:", err, "left:", len(list.Items))
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | sort | tee seen
diff - seen <<'END'
NewClientset Delete: <nil> left: 0
NewClientset DeleteCollection: <nil> left: 1
NewSimpleClientset Delete: <nil> left: 0
NewSimpleClientset DeleteCollection: <nil> left: 1
dynamic DeleteCollection: <nil> left: 1
END
